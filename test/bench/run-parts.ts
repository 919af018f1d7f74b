/** Runs parts of the benchmarks: their chosen measurements, with what several of them share. */
import { messageOf } from '../../src/kernel/fault.js';
import type { Bench, Part, Row } from './row.js';

export interface RunPartsOptions {
  readonly say: (line: string) => void;
  readonly peers: boolean;
  /** Measures only rows whose name has this text; all when empty. */
  readonly only: string;
  /** Names the rows and measures nothing. */
  readonly list: boolean;
}

export interface Measured {
  readonly rows: readonly Row[];
  /** Why it was not measured, by name. */
  readonly missing: ReadonlyMap<string, string>;
}

export async function runParts(parts: readonly Part[], options: RunPartsOptions): Promise<Measured> {
  const rows: Row[] = [];
  const missing = new Map<string, string>();
  for (const part of parts) {
    const ends: (() => Promise<void>)[] = [];
    await part.run(benchOf(options, { rows, missing, ends }));
    for (const end of ends.reverse()) {
      await end().catch((error: unknown) => {
        options.say(`${part.name} does not end cleanly: ${messageOf(error)}`);
        rows.push(failed(`${part.name}: ends cleanly`));
      });
    }
  }
  return { rows, missing };
}

const failed = (what: string): Row => ({ what, unit: '', ours: Number.NaN, beside: {}, goal: 'works', isMet: false });

interface Collected {
  readonly rows: Row[];
  readonly missing: Map<string, string>;
  readonly ends: (() => Promise<void>)[];
}

function benchOf({ say, peers, only, list }: RunPartsOptions, { rows, missing, ends }: Collected): Bench {
  const isChosen = (what: string) => what.includes(only);
  return {
    say,
    peers,
    missing: (name, reason) => {
      if (!missing.has(name)) say(`not measured: ${name} (${reason})`);
      missing.set(name, reason);
    },
    measure: async (names, run) => {
      const chosen = names.filter(isChosen);
      if (list) {
        for (const name of chosen) process.stdout.write(`${name}\n`);
        return;
      }
      const [first] = chosen;
      if (first === undefined) return;
      say(chosen.length === 1 ? first : `${first}, and ${chosen.length - 1} more of the same run`);
      try {
        rows.push(...(await run()).filter(({ what }) => isChosen(what)));
      } catch (error) {
        say(`${first} failed: ${messageOf(error)}`);
        rows.push(failed(first));
      }
    },
    shared: (make, end) => {
      let made: ReturnType<typeof make> | null = null;
      return () => {
        if (made === null) {
          const making = make();
          made = making;
          // Without the thing its measurements have failed, and there is nothing to end.
          ends.push(() => making.then(end, () => undefined));
        }
        return made;
      };
    },
  };
}
