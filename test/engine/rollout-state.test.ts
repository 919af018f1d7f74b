/** The effect of commands on a rollout in each of its states, and its moves by itself. */
import { describe, expect, it } from 'vitest';
import { SYSTEM } from '../../daemon/core/domain-event.js';
import { type Command, commanded, nextMove, type Situation } from '../../daemon/engine/rollouts/rollout-state.js';
import type { RolloutRow } from '../../daemon/engine/rollouts/rollout-store.js';
import { isFault } from '../../src/kernel/fault.js';
import { EMPTY_TALLY, type WaveTally } from '../../src/kernel/walk.js';

interface Given {
  readonly state: RolloutRow['state'];
  readonly waves?: readonly Partial<WaveTally>[];
  readonly passed?: number;
  readonly onFailure?: 'halt' | 'revert';
  readonly isOver?: boolean;
}

function situation({ state, waves = [{ succeeded: 1 }], passed = 0, onFailure = 'halt', isOver = false }: Given) {
  const row = {
    rollout_id: 'r',
    state,
    reason: null,
    passed,
    finished_at: isOver ? 1 : null,
    pace: { onFailure } as RolloutRow['pace'],
  };
  const bounds = { concurrency: 10, hasCanaries: false, maxFailures: null, soak: 0 };
  const view = {
    bounds,
    waves: waves.map((wave) => ({ ...EMPTY_TALLY, ...wave })),
    passed,
    window: 10,
    soakEnd: null,
    now: 0,
  };
  return { row, view, isTouched: () => true } satisfies Situation;
}

const COMMANDS: Readonly<Record<Command['do'], Command>> = {
  pause: { do: 'pause', reason: null },
  resume: { do: 'resume', actor: SYSTEM },
  retry: { do: 'retry', actor: SYSTEM, expiresAt: null },
  cancel: { do: 'cancel', reason: 'no' },
  halt: { do: 'halt', reason: 'no' },
};

function outcome(given: Given, command: Command): string {
  try {
    return commanded(situation(given), command)?.progress.state ?? 'as it is';
  } catch (error) {
    if (isFault(error)) return error.code;
    throw error;
  }
}

const OVER = { waves: [{ succeeded: 1, failed: 1 }], isOver: true } as const;
const TABLE: readonly (readonly [Given, Readonly<Record<Command['do'], string>>])[] = [
  [{ state: 'running' }, row('paused', 'as it is', 'rollout_in_progress', 'cancelled', 'halted')],
  [{ state: 'paused' }, row('as it is', 'running', 'rollout_in_progress', 'cancelled', 'as it is')],
  [{ state: 'halted' }, row('as it is', 'running', 'running', 'cancelled', 'as it is')],
  [
    { state: 'reverting' },
    row('rollout_in_progress', 'as it is', 'rollout_in_progress', 'rollout_in_progress', 'as it is'),
  ],
  [
    { state: 'cancelled', waves: [{ running: 1, skipped: 1 }] },
    row('rollout_finished', 'rollout_finished', 'rollout_in_progress', 'as it is', 'as it is'),
  ],
  [
    { state: 'cancelled', ...OVER },
    row('rollout_finished', 'rollout_finished', 'running', 'rollout_finished', 'as it is'),
  ],
  [
    { state: 'succeeded', isOver: true },
    row('rollout_finished', 'rollout_finished', 'rollout_finished', 'rollout_finished', 'as it is'),
  ],
  [
    { state: 'failed', ...OVER },
    row('rollout_finished', 'rollout_finished', 'running', 'rollout_finished', 'as it is'),
  ],
  [
    { state: 'reverted', waves: [{ skipped: 1 }], isOver: true },
    row('rollout_finished', 'rollout_finished', 'running', 'rollout_finished', 'as it is'),
  ],
];

function row(...[pause, resume, retry, cancel, halt]: readonly [string, string, string, string, string]) {
  return { pause, resume, retry, cancel, halt };
}

describe('a command', () => {
  for (const [given, outcomes] of TABLE) {
    const title = `${given.state}${given.isOver ? ', over' : ''}`;
    it(`has this outcome for a rollout that is ${title}`, () => {
      const found = Object.entries(COMMANDS).map(([name, command]) => [name, outcome(given, command)]);
      expect(Object.fromEntries(found)).toEqual(outcomes);
    });
  }

  it('that resumes a halted rollout forgives its failures, and passes a wave of which nothing is left', () => {
    const given = { state: 'halted', waves: [{ failed: 2 }, { ready: 3 }] } as const;
    expect(commanded(situation(given), COMMANDS.resume)).toMatchObject({
      progress: { state: 'running', passed: 1 },
      agents: { in: ['failed', 'unreachable'], become: { forgiven: 1 } },
    });
  });

  it('that retries begins at the first wave with an agent that did not succeed', () => {
    const given = { state: 'failed', waves: [{ succeeded: 1 }, { failed: 1 }, { skipped: 1 }], passed: 3 } as const;
    expect(commanded(situation(given), COMMANDS.retry)?.progress).toMatchObject({ passed: 1, finished_at: null });
  });
});

describe('a rollout by itself', () => {
  it.each([
    ['starts its agents', { state: 'running', waves: [{ ready: 2 }] }, { do: 'start', count: 2 }],
    ['waits for those in flight', { state: 'reverting', waves: [{ running: 1 }] }, { do: 'wait' }],
    ['reverts its wave', { state: 'reverting', waves: [{ failed: 1 }] }, { do: 'revert' }],
    [
      'ends when it was cancelled',
      { state: 'cancelled' },
      { do: 'change', change: { isOver: true, event: null, stopped: 'the rollout was cancelled' } },
    ],
    ['does nothing when it is paused', { state: 'paused', waves: [{ ready: 2 }] }, { do: 'wait' }],
    ['does nothing once it is over', { state: 'cancelled', isOver: true }, { do: 'wait' }],
    [
      'halts at a failed wave before others',
      { state: 'running', waves: [{ failed: 1 }, { ready: 1 }] },
      { do: 'change', change: { progress: { state: 'halted' }, event: { type: 'rollout.halted' } } },
    ],
    [
      'reverts instead if it is to',
      { state: 'running', waves: [{ failed: 1 }, { ready: 1 }], onFailure: 'revert' },
      { do: 'change', change: { progress: { state: 'reverting', passed: 0 } } },
    ],
  ] as const)('%s', (_title, given, move) => {
    expect(nextMove(situation(given))).toMatchObject(move);
  });
});
