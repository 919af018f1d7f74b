/** The output of one agent among several: whole lines, each behind the agent's name. */
import type { OutputStream } from '../../terminal/frames.js';
import type { ExecSink } from './exec-sink.js';
import { HarmlessOutput } from './harmless-output.js';
import { LineSplitter } from './line-splitter.js';
import type { Outlets } from './through-sink.js';

const LINE_END = Buffer.from('\n');
const RESET = Buffer.from('\u001b[0m');
const ESCAPE = 0x1b;

/** @param prefixes as they are to be written, harmless and coloured */
export function prefixedSink(outlets: Outlets, prefixes: Readonly<Record<OutputStream, string>>): ExecSink {
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

function channelFor(outlets: Outlets, stream: OutputStream, text: string) {
  const prefix = Buffer.from(text);
  const splitter = new LineSplitter();
  const filter = outlets[stream].isTerminal ? new HarmlessOutput({ color: outlets.color[stream], lines: true }) : null;
  const lineOf = (line: Buffer): readonly Buffer[] => {
    // A colour does not run on into the lines of other agents.
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
