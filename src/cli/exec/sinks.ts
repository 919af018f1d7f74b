/** Sinks for the output of remote commands: pass through, prefix lines, keep, or group equal outputs. */

import { createHash, type Hash } from 'node:crypto';
import type { Agent } from '../../contract/agents.js';
import type { OutputStream } from '../../terminal/frames.js';
import { agentName } from '../format.js';
import { type Style, styled } from '../outcome.js';
import { loadPaint, type Paint } from '../render/paint.js';
import { isReaderGone } from '../render/printer.js';
import type { OutputStream as ProcessStream } from '../render/streams.js';
import { cutToWidth, sanitize, widthOf } from '../render/terminal-text.js';
import { setBlocking } from '../terminal/terminal-output.js';
import { type ExecResult, namesOf, withoutAgent, wordsOfEnd } from './exec-end.js';
import { HarmlessOutput } from './harmless-output.js';

export interface ExecSink {
  /** Takes output. Calls `done` once the bytes are flushed. */
  output(stream: OutputStream, bytes: Buffer, done: () => void): void;
  /** Ends the output. Resolves once all of it is flushed. */
  end(): Promise<void>;
}

export interface OutputTargets {
  readonly out: OutputTarget;
  readonly err: OutputTarget;
  /** Streams that get colours. */
  readonly color: Readonly<Record<OutputStream, boolean>>;
}

export function throughSink(outlets: OutputTargets): ExecSink {
  const filters = {
    out: filterFor(outlets, 'out'),
    err: filterFor(outlets, 'err'),
  };
  return {
    output: (stream, bytes, done) => outlets[stream].write(filters[stream]?.push(bytes) ?? bytes, done),
    end: async () => {
      for (const stream of ['out', 'err'] as const) {
        await new Promise<void>((resolve) => outlets[stream].write(filters[stream]?.end() ?? '', resolve));
      }
    },
  };
}

const filterFor = (outlets: OutputTargets, stream: OutputStream): HarmlessOutput | null =>
  outlets[stream].isTerminal ? new HarmlessOutput({ color: outlets.color[stream], lines: false }) : null;

const LINE_END = Buffer.from('\n');
const RESET = Buffer.from('\u001b[0m');
const ESCAPE = 0x1b;

/** Returns a sink that writes whole lines, each with a prefix. `prefixes` are sanitised and coloured. */
export function prefixedSink(outlets: OutputTargets, prefixes: Readonly<Record<OutputStream, string>>): ExecSink {
  const channels = { out: channelFor(outlets, 'out', prefixes.out), err: channelFor(outlets, 'err', prefixes.err) };
  return {
    output: (stream, bytes, done) => outlets[stream].write(channels[stream].push(bytes), done),
    end: async () => {
      for (const stream of ['out', 'err'] as const) {
        await new Promise<void>((resolve) => outlets[stream].write(channels[stream].end(), resolve));
      }
    },
  };
}

function channelFor(outlets: OutputTargets, stream: OutputStream, text: string) {
  const prefix = Buffer.from(text);
  const splitter = new LineSplitter();
  const filter = outlets[stream].isTerminal ? new HarmlessOutput({ color: outlets.color[stream], lines: true }) : null;
  const lineOf = (line: Buffer): readonly Buffer[] => {
    // A style must not continue into the lines of other agents.
    const isStyled = filter !== null && line.includes(ESCAPE);
    return [prefix, line, ...(isStyled ? [RESET] : []), LINE_END];
  };
  return {
    push: (bytes: Buffer): Buffer => {
      const text = filter === null ? bytes : Buffer.from(filter.push(bytes));
      return Buffer.concat(splitter.push(text).flatMap(lineOf));
    },
    end: (): Buffer => {
      const last = splitter.end();
      return last === null ? Buffer.alloc(0) : Buffer.concat(lineOf(last));
    },
  };
}

const COLORS: readonly Style[] = ['accent', 'good', 'warn', 'strong'];
/** Maximum width of a name in columns. */
const WIDEST = 32;

type PrefixOf = (agent: Agent, stream: OutputStream) => string;

/** Returns the line prefixes of agents: names padded to the same width, each in its colour. */
export async function prefixesFor(
  agents: readonly Agent[],
  color: Readonly<Record<OutputStream, boolean>>,
): Promise<PrefixOf> {
  const paints = { out: await loadPaint(color.out), err: await loadPaint(color.err) };
  const names = new Map(agents.map((agent) => [agent, cutToWidth(sanitize(agentName(agent)), WIDEST)]));
  const styles = new Map(agents.map((agent, index) => [agent, COLORS[index % COLORS.length] ?? 'accent']));
  const width = [...names.values()].reduce((most, name) => Math.max(most, widthOf(name)), 0);
  return (agent, stream) => {
    const name = names.get(agent) ?? '';
    const padding = ' '.repeat(width - widthOf(name));
    return `${paints[stream].span(styled(styles.get(agent) ?? 'accent', name))}${padding} | `;
  };
}

/** Bytes kept of each stream; the rest is only counted and hashed. */
const KEPT = 1024 * 1024;

interface Channel {
  readonly parts: Buffer[];
  readonly hash: Hash;
  length: number;
}

const channel = (): Channel => ({ parts: [], hash: createHash('sha256'), length: 0 });

export class KeptOutput implements ExecSink {
  private readonly channels: Readonly<Record<OutputStream, Channel>> = { out: channel(), err: channel() };

  output(stream: OutputStream, bytes: Buffer, done: () => void): void {
    const { parts, hash, length } = this.channels[stream];
    hash.update(bytes);
    // A copy, so that a small slice does not retain its large buffer.
    if (length < KEPT) parts.push(Buffer.from(bytes.subarray(0, KEPT - length)));
    this.channels[stream].length += bytes.length;
    done();
  }

  async end(): Promise<void> {}

  /** Returns the kept beginning of a stream. */
  bytes(stream: OutputStream): Buffer {
    return Buffer.concat(this.channels[stream].parts);
  }

  text(stream: OutputStream): string {
    return this.bytes(stream).toString('utf8');
  }

  /** Returns the total bytes of a stream. */
  length(stream: OutputStream): number {
    return this.channels[stream].length;
  }

  get truncated(): boolean {
    return this.channels.out.length > KEPT || this.channels.err.length > KEPT;
  }

  /** Digest of the whole output of both streams. */
  get digest(): string {
    return (['out', 'err'] as const).map((stream) => this.channels[stream].hash.copy().digest('hex')).join(' ');
  }
}

interface Group {
  readonly results: ExecResult[];
  readonly output: KeptOutput;
}

/** Groups agents by equal output and equal end, and keeps one copy of each output. */
export class OutputGroups {
  private readonly groups = new Map<string, Group>();

  add(result: ExecResult, output: KeptOutput): void {
    const key = JSON.stringify([withoutAgent(wordsOfEnd(result.end), result), output.digest]);
    const group = this.groups.get(key);
    if (group === undefined) this.groups.set(key, { results: [result], output });
    else group.results.push(result);
  }

  /** Prints the groups, the largest first. Resolves once all of it is flushed. */
  async print(outlets: OutputTargets, paints: Readonly<Record<'out' | 'err', Paint>>): Promise<void> {
    const all = [...this.groups.values()].sort((a, b) => b.results.length - a.results.length);
    for (const { results, output } of all) {
      const sorted = results.toSorted((a, b) => (agentName(a.agent) < agentName(b.agent) ? -1 : 1));
      const [first] = sorted;
      if (first === undefined) continue;
      const words = withoutAgent(wordsOfEnd(first.end), first);
      for (const stream of ['out', 'err'] as const) {
        const length = output.length(stream);
        // A group without output prints its heading once.
        if (length === 0 && (stream === 'err' || output.length('err') > 0)) continue;
        const status = words === '' ? [] : [' ', styled('bad', words)];
        const empty = length === 0 ? [' ', styled('dim', '(no output)')] : [];
        const head = paints[stream].line([styled('strong', `${namesOf(sorted)}:`), ...status, ...empty]);
        await written(outlets, stream, `${head}\n`);
        const bytes = output.bytes(stream);
        await new Promise<void>((resolve) => {
          const sink = throughSink(outlets);
          sink.output(stream, bytes, () => void sink.end().then(resolve));
        });
        if (bytes.length > 0 && bytes.at(-1) !== 0x0a) await written(outlets, stream, '\n');
        if (length > KEPT) await written(outlets, 'err', `(cut: ${KEPT} of ${length} bytes)\n`);
      }
    }
  }
}

const written = (outlets: OutputTargets, stream: 'out' | 'err', text: string): Promise<void> =>
  new Promise((resolve) => outlets[stream].write(text, resolve));

/** Standard output or standard error as target of remote output. */
interface OutputTarget {
  readonly isTerminal: boolean;
  /** True once the reader has closed the stream; writes are then dropped. */
  readonly closed: boolean;
  /** Write error other than a closed reader; null if there is none. */
  readonly problem: Error | null;
  /** Writes bytes. Calls `done` once they are flushed or the stream is closed. */
  write(bytes: Uint8Array | string, done: () => void): void;
  stop(): void;
}

interface OutletOptions {
  readonly stream: ProcessStream;
  /** Called before each write, to erase the live progress line. */
  onWrite(): void;
  /** Called once, when the stream is closed. */
  onClosed(): void;
}

export function openOutlet({ stream, onWrite, onClosed }: OutletOptions): OutputTarget {
  let closed = false;
  let problem: Error | null = null;
  const close = (error: Error) => {
    if (closed) return;
    closed = true;
    if (!isReaderGone(error)) problem = error;
    onClosed();
  };
  stream.on('error', close);
  // A terminal stopped by Ctrl-S must block neither Ctrl-C nor the other agents.
  if (stream.isTTY) setBlocking(stream, false);
  return {
    isTerminal: stream.isTTY === true,
    get closed() {
      return closed;
    },
    get problem() {
      return problem;
    },
    write: (bytes, done) => {
      if (closed || bytes.length === 0) return done();
      onWrite();
      stream.write(bytes, (error) => {
        if (error) close(error);
        done();
      });
    },
    stop: () => {
      if (stream.isTTY) setBlocking(stream, true);
      // A late error without a listener would end the process.
      stream.on('error', () => undefined);
      stream.off('error', close);
    },
  };
}

/** Longest line in bytes. Longer lines are cut to bound the memory. */
const LONGEST_LINE = 64 * 1024;
const LINE_FEED = 0x0a;

export class LineSplitter {
  /** Bytes after the last line feed. */
  private parts: Buffer[] = [];
  private length = 0;

  /** Adds bytes and returns the complete lines, without line feeds. */
  push(bytes: Buffer): readonly Buffer[] {
    if (!bytes.includes(LINE_FEED) && this.length + bytes.length <= LONGEST_LINE) {
      this.keep(bytes);
      return [];
    }
    const lines: Buffer[] = [];
    let text = Buffer.concat([...this.parts, bytes]);
    for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED)) {
      lines.push(...cut(text.subarray(0, end)));
      text = text.subarray(end + 1);
    }
    const tail = cut(text);
    const rest = tail.at(-1) ?? text;
    lines.push(...tail.slice(0, -1));
    this.parts = [];
    this.length = 0;
    this.keep(rest);
    return lines;
  }

  /** Returns the bytes after the last line feed; null if there are none. */
  end(): Buffer | null {
    const rest = Buffer.concat(this.parts);
    this.parts = [];
    this.length = 0;
    return rest.length === 0 ? null : rest;
  }

  /** Keeps a copy, so that a few bytes do not retain the whole chunk. */
  private keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.parts.push(Buffer.from(bytes));
    this.length += bytes.length;
  }
}

/** Cuts a line into pieces of the maximum length, at least one. */
function cut(line: Buffer): readonly Buffer[] {
  const pieces = Math.max(1, Math.ceil(line.length / LONGEST_LINE));
  return Array.from({ length: pieces }, (_, index) => line.subarray(index * LONGEST_LINE, (index + 1) * LONGEST_LINE));
}
