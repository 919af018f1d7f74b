/** How fast short commands are over, beside a Node that does nothing. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { alternate, atMostTimes, numbersOf, OURS, type Part, rowOf } from './row.js';
import { runProgram } from './run-program.js';
import { sized } from './sized.js';
import { type Fleet, startFleet } from './terminal/fleet.js';

const ROUNDS = sized(21, 1);
const NODE = 'node -e 0';

interface Command {
  readonly name: string;
  readonly words: (fleet: Fleet, module: string) => readonly string[];
  /** How many times as long as Node itself it may take. */
  readonly factor: number;
}

const COMMANDS: readonly Command[] = [
  { name: 'orch --version', words: () => ['--version'], factor: 1.4 },
  { name: 'orch --help', words: () => ['--help'], factor: 1.8 },
  { name: 'orch agents list', words: () => ['agents', 'list'], factor: 3 },
  {
    name: 'completion of a name',
    words: ({ name }) => ['__complete', '--', 'agents', 'show', name.slice(0, 1)],
    factor: 2.3,
  },
  { name: 'orch module validate, small', words: (_, module) => ['module', 'validate', module], factor: 3 },
  {
    name: 'orch plan --local of one file',
    words: ({ dataDirectory }, module) => ['plan', '--local', '-f', module, '--data-dir', dataDirectory],
    factor: 3.5,
  },
];

export const start: Part = {
  name: 'start',
  summary: 'short commands, whole processes; beside node -e 0',
  run: async ({ measure, shared }) => {
    const fleet = shared(startFleet, (made) => made.stop());
    for (const { name, words, factor } of COMMANDS) {
      const what = `start: ${name}`;
      await measure([what, `${what}, CPU`], async () => {
        const made = await fleet();
        const { env } = made;
        const command = made.orch(...words(made, writeModule()));
        const programs = new Map([
          [NODE, () => runProgram([process.execPath, '-e', '0'], { env })],
          [OURS, () => runProgram(command, { env })],
        ]);
        // The first run may leave caches for those after it.
        await runProgram(command, { env });
        const runs = await alternate(ROUNDS, programs);
        return [
          rowOf({ what, unit: 'ms', runs: numbersOf(runs, ({ wall }) => wall), goal: atMostTimes(factor, NODE) }),
          rowOf({ what: `${what}, CPU`, unit: 'ms', runs: numbersOf(runs, ({ cpu }) => cpu), goal: null }),
        ];
      });
    }
  },
};

function writeModule(): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-bench-'));
  const path = join(directory, 'small.orch.yaml');
  const text = `name: small
supports:
  - platform: ${process.platform}
resources:
  - resource:
      file-unix: {path: ${join(directory, 'motd')}, content: "hello\\n"}
`;
  writeFileSync(path, text);
  return path;
}
