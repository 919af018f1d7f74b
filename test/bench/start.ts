/** How fast short commands are over, beside a Node that does nothing. */
import type { Part, Row } from './row.js';
import { runProgram } from './run-program.js';
import { median } from './statistics.js';
import { type Fleet, startFleet } from './terminal/fleet.js';

const ROUNDS = 15;
const NODE = 'node -e 0';

/** What is run, and how many times as long as Node itself it may take. */
const COMMANDS = [
  { words: ['--version'], factor: 1.4 },
  { words: ['--help'], factor: 1.8 },
  { words: ['agents', 'list'], factor: 3 },
  { words: ['__complete', '--', 'agents', 'show', 'b'], factor: 2.5 },
] as const;

export const start: Part = {
  name: 'start',
  summary: 'short commands, whole processes: --version, --help, agents list, a completion; beside node -e 0',
  run: async ({ say }) => {
    const fleet = await startFleet();
    try {
      say('start: short commands');
      return await measureStart(fleet);
    } finally {
      await fleet.stop();
    }
  },
};

async function measureStart(fleet: Fleet): Promise<readonly Row[]> {
  const { env } = fleet;
  const bare: number[] = [];
  const ours = COMMANDS.map(({ words, factor }) => ({ words, factor, times: [] as number[] }));
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(await runProgram([process.execPath, '-e', '0'], { env }));
    for (const { words, times } of ours) times.push(await runProgram(fleet.orch(...words), { env }));
  }
  const limit = median(bare);
  return ours.map(({ words, factor, times }) => ({
    what: `start: orch ${words.join(' ')}`,
    unit: 'ms',
    ours: median(times),
    beside: { [NODE]: limit },
    goal: `at most ${factor} x ${NODE}`,
    isMet: median(times) <= factor * limit,
  }));
}
