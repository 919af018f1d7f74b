/** Runs the command line in this process with streams that are kept. */
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { INTERRUPTS } from '../../src/cli/interrupts.js';
import { runCli } from '../../src/cli/run.js';
import type { Programs } from '../../src/programs/programs.js';
import { jsonProblems } from './json-shapes.js';
import { withoutRuntimeWarnings } from './runtime-warnings.js';

/** Fixed, so that "2h ago" always means the same. */
export const NOW = Date.UTC(2025, 2, 1, 12, 0, 0);

export interface RunOptions {
  /** True for an orchestrator whose answers break their schemas. */
  readonly isHostile?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; closed at once when absent. */
  readonly input?: string;
  /** All three streams are a terminal of that many columns. */
  readonly columns?: number;
  /** The keys that the person types when standard error shows a text, one after the other. */
  readonly answers?: readonly { readonly at: string | RegExp; readonly type: string }[];
  readonly programs?: Partial<Programs>;
  /** `interrupts.emit('SIGINT')` is Ctrl-C. */
  readonly interrupts?: EventEmitter;
  /** In place of the streams that are kept. */
  readonly stdin?: Readable;
  readonly stdout?: Writable;
  /** Told whenever standard error has grown. */
  readonly onError?: (shown: string) => void;
}

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

class Screen extends Writable {
  text = '';
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  onGrow: (text: string) => void = () => {};

  constructor(columns: number | undefined) {
    super({ decodeStrings: false });
    this.isTTY = columns !== undefined;
    this.columns = columns;
  }

  /** A terminal is not closed by whoever pipes into it. */
  override end(): this {
    return this;
  }

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.onGrow(this.text);
    done();
  }
}

class Keyboard extends PassThrough {
  readonly isTTY: boolean;

  constructor(isTTY: boolean) {
    super();
    this.isTTY = isTTY;
  }

  setRawMode(): this {
    return this;
  }
}

export const noPrograms: Programs = {
  serve: async () => 0,
  agent: {
    connect: async () => 0,
    listen: async () => 0,
    status: async () => ({}),
    repin: async () => {},
    planLeave: async () => ({ data_dir: '/d', service: null, service_kept: null }),
    leave: async () => ({ data_dir: '/d', service: null, service_kept: null }),
    configSchema: async () => ({}),
  },
  service: {
    isUnknownName: async () => false,
    planServe: async () => {
      throw new Error('no host is prepared');
    },
    installServe: async () => {
      throw new Error('no host is prepared');
    },
    uninstallServe: async () => ({ unit: 'orch-serve.service', unit_file: null, kept: [] }),
    installAgent: async () => {
      throw new Error('no host is prepared');
    },
    uninstallAgent: async () => ({ unit: 'orch-agent.service', unit_file: null, kept: [] }),
  },
  doctor: async () => [],
  local: async () => {
    throw new Error('no machine is prepared');
  },
  quickstart: async () => 0,
  rotateSecretsKey: async () => ({ key_id: '0123456789abcdef', kept: null, secrets: 2, outputs: 0, channels: 0 }),
  clock: async () => ({ now: '2026-03-01T12:00:00.000Z', doubt_ms: 0, waits: false, ahead_ms: 0 }),
  store: {
    backup: async () => {
      throw new Error('no store is prepared');
    },
    restore: async () => {
      throw new Error('no store is prepared');
    },
    recoverAdmin: async () => {
      throw new Error('no store is prepared');
    },
    copy: async () => {
      throw new Error('no store is prepared');
    },
  },
};

/** A home directory of its own, which `dispose` removes. */
export class Home {
  readonly path = mkdtempSync(join(tmpdir(), 'orch-cli-'));

  file(...parts: readonly string[]): string {
    return join(this.path, ...parts);
  }

  get env(): Readonly<Record<string, string>> {
    return { HOME: this.path };
  }

  dispose(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Runs the command line. What it prints with `-o json` has to have the shape that the documents name. */
export async function runOrch(argv: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const ran = await withoutRuntimeWarnings(() => runInThisProcess(argv, options));
  if (options.isHostile !== true) expect(jsonProblems(argv, ran.stdout), argv.join(' ')).toEqual([]);
  return ran;
}

async function runInThisProcess(argv: readonly string[], options: RunOptions): Promise<Ran> {
  const stdout = new Screen(options.columns);
  const stderr = new Screen(options.columns);
  const stdin = new Keyboard(options.columns !== undefined);
  const answers = [...(options.answers ?? [])];
  let seen = 0;
  stderr.onGrow = (text) => {
    options.onError?.(text);
    const [next] = answers;
    const at = next ? text.slice(seen).search(next.at) : -1;
    if (!next || at < 0) return;
    answers.shift();
    seen = text.length;
    setImmediate(() => stdin.write(next.type));
  };
  if (options.columns === undefined || options.input !== undefined) stdin.end(options.input ?? '');
  const interrupts = options.interrupts ?? new EventEmitter();
  const status = await runCli({
    argv,
    env: { HOME: '/nonexistent', ...options.env },
    stdin: options.stdin ?? stdin,
    stdout: options.stdout ?? stdout,
    stderr,
    programs: { ...noPrograms, ...options.programs },
    clock: { now: () => NOW, monotonic: () => performance.now() },
    interrupts: (listener) => {
      const heard = INTERRUPTS.map((name) => ({ name, tell: () => listener(name) }));
      for (const { name, tell } of heard) interrupts.on(name, tell);
      return () => {
        for (const { name, tell } of heard) interrupts.off(name, tell);
      };
    },
  });
  return { status, stdout: stdout.text, stderr: stderr.text };
}

/** Expected output in files; UPDATE_GOLDENS=1 writes them anew, to be reviewed like code. */
const folder = fileURLToPath(new URL('../cli/goldens/', import.meta.url));

export function expectGolden(name: string, text: string): void {
  const path = `${folder}${name}.txt`;
  if (process.env.UPDATE_GOLDENS === '1') writeFileSync(path, text);
  expect(text).toBe(readFileSync(path, 'utf8'));
}

/**
 * Returns the text without control sequences and without live lines that were erased: how many of these were drawn depends on the
 * load of the machine.
 */
export const settledText = (text: string): string =>
  text
    .replace(/[^\n]*\r\x1b\[2K/g, '')
    .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
    .replace(/\r/g, '');

/** A person's view of a command, with the typed keys. */
export function transcript(argv: readonly string[], { status, stdout, stderr }: Ran): string {
  const typed = argv.map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word}'`)).join(' ');
  const error = stderr === '' ? '' : `--- standard error\n${stderr}`;
  return `$ orch ${typed}\n${stdout}${error}--- exit status ${status}\n`;
}
