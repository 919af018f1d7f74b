/** How fast a warm agent finds that files are as declared, in this process. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { plan } from '../../src/agent/converge.js';
import { thisHost } from '../../src/agent/host/this-host.js';
import { alternate, atMostTimes, OURS, type Part, rowOf } from './row.js';
import { sized } from './sized.js';

const SIZES = sized([1_000, 10_000], [2, 3]);
const ROUNDS = sized(15, 1);
const WARM_UP = sized(5, 1);
const LOOP = 'Node loop';

interface WantedFile {
  readonly path: string;
  readonly content: string;
}

export const observation: Part = {
  name: 'observation',
  summary: 'reads and plans of 1,000 and 10,000 files that are as declared, in this process; beside a plain loop',
  run: async ({ measure }) => {
    for (const count of SIZES) {
      const shown = count.toLocaleString('en');
      const observed = `observation: warm, ${shown} files`;
      const planned = `observation: warm plan, ${shown} files`;
      await measure([observed, planned], async () => {
        const directory = mkdtempSync(join(tmpdir(), 'observed-'));
        try {
          const { observe, look, loop } = programsOn(writeFiles(directory, count));
          const programs = new Map([
            [OURS, () => timeOf(observe)],
            [LOOP, () => timeOf(loop)],
            [planned, () => timeOf(look)],
          ]);
          await alternate(WARM_UP, programs);
          const runs = await alternate(ROUNDS, programs);
          const of = (name: string) => runs.get(name) ?? [];
          const loops = [LOOP, of(LOOP)] as const;
          return [
            rowOf({
              what: observed,
              unit: 'ms',
              runs: new Map([[OURS, of(OURS)], loops]),
              goal: atMostTimes(1.5, LOOP),
            }),
            rowOf({ what: planned, unit: 'ms', runs: new Map([[OURS, of(planned)], loops]), goal: null }),
          ];
        } finally {
          rmSync(directory, { recursive: true, force: true });
        }
      });
    }
  },
};

async function timeOf(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function programsOn(files: readonly WantedFile[]) {
  const host = thisHost();
  const requests = files.map(({ path }) => ({ path, content: true, entries: false }));
  const resources = files.map(({ path, content }) => ({
    module: 'bench',
    kind: 'file-unix',
    identity: path,
    id: null,
    name: null,
    body: { path, content },
    after: [],
  }));
  const clock = { now: () => Date.now(), monotonic: () => performance.now() };
  return {
    observe: () => {
      const facts = host.observe(requests);
      if (facts.length !== files.length) throw new Error(`${facts.length} facts of ${files.length} files`);
    },
    look: async () => {
      const { results } = await plan({ resources, removals: [] }, host, { clock });
      const changes = results.filter(({ result }) => result.status !== 'unchanged').length;
      if (changes > 0) throw new Error(`${changes} files are not as declared`);
    },
    loop: () => {
      for (const { path, content } of files) {
        if (!readFileSync(path).equals(Buffer.from(content))) throw new Error(`${path} differs`);
      }
    },
  };
}

function writeFiles(directory: string, count: number): readonly WantedFile[] {
  const files = Array.from({ length: count }, (_, index) => ({
    path: join(directory, `${index % 10}`, `${Math.floor(index / 10) % 10}`, `file-${index}`),
    content: `${`${index} `.repeat(200).slice(0, 199)}\n`,
  }));
  for (const parent of new Set(files.map(({ path }) => dirname(path)))) mkdirSync(parent, { recursive: true });
  for (const { path, content } of files) writeFileSync(path, content);
  return files;
}
