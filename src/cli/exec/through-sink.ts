/** The output of the one agent there is: every byte as it came, but harmless on a terminal. */
import type { OutputStream } from '../../terminal/frames.js';
import type { ExecSink } from './exec-sink.js';
import { HarmlessOutput } from './harmless-output.js';
import type { Outlet } from './outlet.js';

export interface Outlets {
  readonly out: Outlet;
  readonly err: Outlet;
  /** Colours are wanted there. */
  readonly color: Readonly<Record<OutputStream, boolean>>;
}

export function throughSink(outlets: Outlets): ExecSink {
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

const filterFor = (outlets: Outlets, stream: OutputStream): HarmlessOutput | null =>
  outlets[stream].isTerminal ? new HarmlessOutput({ color: outlets.color[stream], lines: false }) : null;
