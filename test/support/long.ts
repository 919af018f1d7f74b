/** The resources of a process of this machine: descriptors, threads, children, memory, and with the inspector its heap and timers. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { childrenOf } from './terminal-fleet.js';

export interface ProcessView {
  /** The targets of the descriptors, without numbers. */
  readonly descriptors: readonly string[];
  readonly threads: number;
  readonly children: number;
  readonly zombies: number;
  /** Bytes. */
  readonly resident: number;
}

export interface HeapView {
  /** Bytes, after a collection. */
  readonly heap: number;
  /** Timers, sockets and the like, by their kind. */
  readonly resources: Readonly<Record<string, number>>;
}

export const MEBIBYTE = 1024 * 1024;

const statusOf = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';

/** 0 when it has ended. */
export function residentOf(pid: number): number {
  try {
    return Number(statusOf(pid, 'VmRSS')) * 1024;
  } catch {
    return 0;
  }
}

export function viewOf(pid: number): ProcessView {
  const children = childrenOf(pid);
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`)
      .map((name) => targetOf(pid, name))
      .sort(),
    threads: readdirSync(`/proc/${pid}/task`).length,
    children: children.length,
    zombies: children.filter((child) => stateOf(child) === 'Z').length,
    resident: residentOf(pid),
  };
}

/** Takes samples until `stop`, which gives the highest resident memory. */
export function watchMemory(pids: readonly number[]): { stop(): readonly number[] } {
  const highest = pids.map(residentOf);
  const look = setInterval(() => {
    for (const [index, pid] of pids.entries()) highest[index] = Math.max(highest[index] ?? 0, residentOf(pid));
  }, 100);
  return {
    stop: () => {
      clearInterval(look);
      return highest;
    },
  };
}

/** Asks the process itself through its inspector, which is closed again. */
export async function heapOf(pid: number): Promise<HeapView> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    process.kill(pid, 'SIGUSR1');
    await pause(500);
    const view = await askInspector(pid).catch(() => null);
    if (view !== null) return view;
  }
  throw new Error(`process ${pid} opens no inspector`);
}

/** Where a process opens its inspector after a signal. */
const INSPECTOR = 'http://127.0.0.1:9229/json';

const QUESTION = `(() => {
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  setTimeout(() => process.getBuiltinModule('node:inspector').close(), 100);
  return JSON.stringify({ pid: process.pid, heap: process.memoryUsage().heapUsed, resources });
})()`;

async function askInspector(pid: number): Promise<HeapView | null> {
  const [target] = (await (await fetch(INSPECTOR)).json()) as readonly { readonly webSocketDebuggerUrl: string }[];
  if (target === undefined) return null;
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  const ask = (id: number, method: string, params = {}) =>
    new Promise<{ readonly result: { readonly value: string } }>((resolve, reject) => {
      const hear = (data: Buffer) => {
        const answer = JSON.parse(data.toString());
        if (answer.id !== id) return;
        socket.off('message', hear);
        resolve(answer.result);
      };
      socket.on('message', hear);
      socket.once('close', () => reject(new Error('the inspector was closed')));
      socket.send(JSON.stringify({ id, method, params }));
    });
  for (const id of [1, 2, 3]) await ask(id, 'HeapProfiler.collectGarbage');
  const { result } = await ask(4, 'Runtime.evaluate', { expression: QUESTION, returnByValue: true });
  socket.close();
  const value = JSON.parse(result.value) as HeapView & { readonly pid: number };
  return value.pid === pid ? value : null;
}

function stateOf(pid: number): string {
  try {
    return statusOf(pid, 'State');
  } catch {
    return '';
  }
}

function targetOf(pid: number, name: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${name}`).replace(/\d+/g, 'N');
  } catch {
    return 'closed meanwhile';
  }
}

/** Carries TCP connections to a port of this machine, and can cut them or let them fall silent without a word to either end. */
interface Pair {
  readonly near: Socket;
  readonly far: Socket;
  isSilent: boolean;
}

export class Cable {
  readonly port: number;
  /** How many connections there were. */
  connections = 0;
  private readonly server: Server;
  private readonly pairs = new Set<Pair>();

  private constructor(server: Server, port: number) {
    this.server = server;
    this.port = port;
  }

  static async open(target: number): Promise<Cable> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the cable has no port');
    const cable = new Cable(server, address.port);
    server.on('connection', (near) => cable.join(near, target));
    return cable;
  }

  /** From now on nothing goes through the connections that there are, and neither end learns of the other's. New ones work. */
  silence(): void {
    for (const pair of this.pairs) {
      pair.isSilent = true;
      pair.near.unpipe(pair.far).pause();
      pair.far.unpipe(pair.near).pause();
    }
  }

  cut(): void {
    for (const { near, far } of this.pairs) {
      near.destroy();
      far.destroy();
    }
    this.pairs.clear();
  }

  close(): void {
    this.cut();
    this.server.close();
  }

  private join(near: Socket, target: number): void {
    this.connections += 1;
    const far = connect(target, '127.0.0.1');
    const pair: Pair = { near, far, isSilent: false };
    this.pairs.add(pair);
    for (const end of [near, far]) {
      end.setNoDelay(true);
      end.on('error', () => undefined);
      end.on('close', () => {
        if (pair.isSilent) return;
        this.pairs.delete(pair);
        near.destroy();
        far.destroy();
      });
    }
    near.pipe(far);
    far.pipe(near);
  }
}

/** @param patience milliseconds */
export async function holds(
  condition: () => boolean | Promise<boolean>,
  patience: number,
  what: string,
): Promise<void> {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`still waiting until ${what}`);
    await pause(50);
  }
}

/** The SHA-256 of so many bytes that a command begins with, run here. */
export function hashOfFirst(bytes: number, [file = '', ...args]: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  let left = bytes;
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      hash.update(chunk.subarray(0, left));
      left -= Math.min(left, chunk.length);
      if (left === 0) child.kill();
    });
    child.on('close', () => resolve(left === 0 ? hash.digest('hex') : `${left} bytes are missing`));
  });
}
