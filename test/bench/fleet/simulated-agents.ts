/**
 * A program with many agents in one process. Dialling, TLS, the session and its messages are the product's; keys, facts and
 * measurements are kept in memory, and the engine answers at once.
 */
import { generateKeyPairSync } from 'node:crypto';
import { Backoff } from '../../../src/agent/link/backoff.js';
import { dialContext, dialOrchestrator, isRefusal } from '../../../src/agent/link/dial.js';
import { runSession } from '../../../src/agent/session.js';
import { nodeIdOf, publicKeyOfKeyObject } from '../../../src/identity/key-object.js';
import { requirePinned } from '../../../src/identity/pin.js';
import type { Clock } from '../../../src/kernel/clock.js';
import type { PublicKeyHex } from '../../../src/kernel/ids.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import type { MetricsSample } from '../../../src/kernel/schema.js';
import { answerQuestions, tell } from '../programs.js';
import { SimulatedEngine } from './simulated-engine.js';

export interface SimulatedAddress {
  readonly host: string;
  readonly port: number;
  readonly orchestratorKey: PublicKeyHex;
}

export type SimulatorQuestion =
  /** Starts agents, at most `atOnce` of them dialling at a time until each has had its first answer. */
  | {
      readonly do: 'start';
      readonly address: SimulatedAddress;
      readonly names: readonly string[];
      readonly token: string | null;
      readonly atOnce: number;
    }
  | { readonly do: 'count' }
  /** Begins to count anew. */
  | { readonly do: 'reset' };

/** Counts since the last `reset`, except `connected`. */
export interface SimulatorCounts {
  /** Approved agents that are connected now. */
  readonly connected: number;
  /** Moments at which agents were connected and approved, in Unix milliseconds. */
  readonly arrivals: readonly number[];
  readonly failedDials: number;
  readonly runs: { readonly plan: number; readonly apply: number; readonly drift: number; readonly verify: number };
}

/** An agent that waits for approval. */
export interface PendingAgent {
  readonly nodeId: string;
  readonly name: string;
}

const DIAL_TIMEOUT = 15_000;
const clock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

let connected = 0;
let arrivals: number[] = [];
let failedDials = 0;
let runs = { plan: 0, apply: 0, drift: 0, verify: 0 };

interface AgentOptions {
  readonly address: SimulatedAddress;
  readonly name: string;
  readonly token: string | null;
}

/**
 * Connects again and again, with the pauses of a real agent.
 * @param onAnswer called when the orchestrator has answered a hello
 */
async function runAgent({ address, name, token }: AgentOptions, onAnswer: () => void): Promise<void> {
  const { privateKey } = generateKeyPairSync('ed25519');
  const context = dialContext(privateKey);
  const nodeId = nodeIdOf(publicKeyOfKeyObject(privateKey));
  const engine = new SimulatedEngine((mode) => {
    runs[mode] += 1;
  });
  const facts = factsOf(name);
  const backoff = new Backoff({ random: Math.random });
  let offered = token;
  for (;;) {
    const since = clock.monotonic();
    let isApproved = false;
    let wasRefused = false;
    try {
      const { socket } = await dialOrchestrator({
        host: address.host,
        port: address.port,
        context,
        pinned: address.orchestratorKey,
        verifyPeer: (key) => requirePinned(address.orchestratorKey, key, address.host),
        timeoutMs: DIAL_TIMEOUT,
      });
      const onStatus = (status: 'pending' | 'approved') => {
        offered = null;
        onAnswer();
        if (status === 'pending') tell({ nodeId, name } satisfies PendingAgent);
        else if (!isApproved) {
          isApproved = true;
          connected += 1;
          arrivals.push(Date.now());
        }
      };
      await runSession(
        {
          socket,
          engine,
          clock,
          logger: silentLogger,
          facts: () => ({ attributes: facts, parts: {}, volatile: {} }),
          sample: async () => newSample(),
          enrolmentToken: offered,
          onStatus,
        },
        new AbortController().signal,
      );
    } catch (error) {
      wasRefused = isRefusal(error);
      failedDials += 1;
    }
    if (isApproved) connected -= 1;
    backoff.ended(clock.monotonic() - since, wasRefused);
    await new Promise((resolve) => setTimeout(resolve, backoff.next()));
  }
}

const factsOf = (hostname: string) => ({
  platform: 'linux',
  arch: 'x86_64',
  distro: 'debian',
  version: '13',
  init_system: 'systemd',
  hostname,
  kernel: '6.12.41+deb13-amd64',
  cpus: '4',
  memory_bytes: '8323166208',
});

const newSample = (): MetricsSample => ({
  collected_at: Math.floor(Date.now() / 1000),
  cpu_usage: Math.round(Math.random() * 1000) / 10,
  memory_used: 2_000_000_000 + Math.floor(Math.random() * 1_000_000_000),
  memory_total: 8_323_166_208,
  disk_used: 20_000_000_000,
  disk_total: 100_000_000_000,
  uptime: Math.floor(performance.now() / 1000),
});

async function start({ names, atOnce, ...options }: Extract<SimulatorQuestion, { do: 'start' }>): Promise<void> {
  const rest = [...names];
  const startRest = async (): Promise<void> => {
    for (let name = rest.shift(); name !== undefined; name = rest.shift()) {
      const started = { ...options, name };
      await new Promise<void>((resolve) => void runAgent(started, resolve));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, startRest));
}

answerQuestions(async (question: SimulatorQuestion): Promise<SimulatorCounts | null> => {
  if (question.do === 'count') return { connected, arrivals, failedDials, runs };
  if (question.do === 'start') await start(question);
  else {
    arrivals = [];
    failedDials = 0;
    runs = { plan: 0, apply: 0, drift: 0, verify: 0 };
  }
  return null;
});
