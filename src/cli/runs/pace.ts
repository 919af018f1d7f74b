/** The pace of a rollout: options of `orch apply` and `orch plan`, their checks, and the members of the request. */
import { ROLLOUT_CONCURRENCY } from '../../contract/rollout-concurrency.js';
import type { RolloutRecord } from '../../contract/rollouts.js';
import { Fault } from '../../kernel/fault.js';
import { type Share, unorderedWaves } from '../../kernel/walk.js';
import type { Context } from '../context.js';
import { choice, flag, listOfShares, share, text } from '../options.js';
import { parseDuration } from '../parse-time.js';

/** Default of `--expires`. */
const EXPIRES = '24h';

type OnFailure = RolloutRecord['pace']['on_failure'];

/** The compiler checks these against the contract. */
const onFailures = { halt: true, revert: true } satisfies Readonly<Record<OnFailure, true>>;

const isOnFailure = (word: string): word is OnFailure => Object.hasOwn(onFailures, word);

const ON_FAILURE: readonly OnFailure[] = Object.keys(onFailures).filter(isOnFailure);

/** Options of plan and apply. */
export const planPaceOptions = {
  concurrency: share(
    'N',
    `most agents at a time, or a share [${ROLLOUT_CONCURRENCY.standard}]; a bound starts with one`,
    1,
  ),
  canary: share('N', 'agents that go first, or a share such as 10%; all must succeed before the rest starts', 0),
  maxFailures: share('N', 'start no further agent after N failures, or a share; never more in flight than may fail', 1),
} as const;

export const applyPaceOptions = {
  ...planPaceOptions,
  waves: listOfShares('LIST', 'go in waves up to these totals of agents, such as 1,10%,100%'),
  soak: text('TIME', 'wait so long after each wave, then check its agents, such as 5m'),
  onFailure: choice('WHAT', ON_FAILURE, 'at a bound, halt the rollout or revert its wave [halt]'),
  skipOffline: flag('skip offline agents, which count as failures otherwise'),
  whenOnline: flag('wait for offline agents, and apply when they return'),
  expires: text('TIME', `how long --when-online waits [${EXPIRES}]`),
  detach: flag('begin, and do not wait for the end'),
} as const;

/** Pace of a rollout; undefined members take the defaults of the orchestrator. */
export interface Pace {
  readonly concurrency?: Share | undefined;
  readonly canary?: Share | undefined;
  readonly maxFailures?: Share | undefined;
  readonly waves?: readonly Share[] | undefined;
  readonly soakSecs?: number | undefined;
  readonly onFailure?: OnFailure | undefined;
  readonly skipOffline?: boolean | undefined;
  /** Seconds for which offline agents are waited for. */
  readonly whenOnlineSecs?: number | undefined;
}

/** Values of `applyPaceOptions` as typed. */
export interface PaceChoice {
  readonly canary: Share | undefined;
  readonly waves: readonly Share[] | undefined;
  readonly soak: string | undefined;
  readonly concurrency: Share | undefined;
  readonly maxFailures: Share | undefined;
  readonly onFailure: OnFailure | undefined;
  readonly skipOffline: boolean;
  readonly whenOnline: boolean;
  readonly expires: string | undefined;
}

/** Returns the pace of the options. Throws `usage` for options that contradict or require each other. */
export function choosePace(given: PaceChoice): Pace {
  const { canary, waves, soak, concurrency, maxFailures, onFailure, skipOffline, whenOnline, expires } = given;
  if (waves !== undefined) requireRising(waves);
  const hasCanary = canary !== undefined && canary !== 0;
  if (soak !== undefined && !hasCanary && (waves === undefined || waves.length < 2)) {
    throw new Fault('usage', '--soak is a pause between waves, and this apply has only one', {
      hint: 'add --waves 1,10%,100% or --canary 1',
    });
  }
  if (onFailure !== undefined && !hasCanary && waves === undefined && maxFailures === undefined) {
    throw new Fault('usage', '--on-failure says what a bound does, and this apply has none', {
      hint: 'add --waves 1,10%,100%, --canary 1 or --max-failures 1',
    });
  }
  if (expires !== undefined && !whenOnline) {
    throw new Fault('usage', '--expires says how long --when-online waits, and --when-online is missing', {
      hint: `such as: --when-online --expires ${expires}`,
    });
  }
  if (skipOffline && whenOnline) {
    throw new Fault('usage', '--skip-offline and --when-online exclude each other', {
      hint: 'offline agents are skipped with the one, and waited for with the other',
    });
  }
  return {
    concurrency,
    canary,
    maxFailures,
    waves,
    soakSecs: soak === undefined ? undefined : parseDuration(soak, '--soak'),
    onFailure,
    skipOffline: skipOffline || undefined,
    whenOnlineSecs: whenOnline ? parseDuration(expires ?? EXPIRES, '--expires') : undefined,
  };
}

/** Throws `usage` unless numbers and shares rise. A number cannot be compared with a share before the agents are known. */
function requireRising(waves: readonly Share[]): void {
  const pair = unorderedWaves(waves);
  if (pair === null) return;
  throw new Fault('usage', `--waves must rise, and ${pair[1]} follows ${pair[0]}`, {
    hint: 'each wave is the total of agents that it reaches: --waves 1,10%,100%',
  });
}

/** Returns whether a single agent needs a rollout, because an apply of one agent has no such member. */
export const needsRollout = ({ waves, soakSecs, onFailure, skipOffline, whenOnlineSecs }: Pace): boolean =>
  [waves, soakSecs, onFailure, skipOffline, whenOnlineSecs].some((given) => given !== undefined);

/** Returns which pace options were given, by flag, for the check against `--local`. */
export const paceFlags = (
  given: Partial<PaceChoice> & { readonly detach?: boolean },
): Readonly<Record<string, boolean>> => ({
  '--canary': given.canary !== undefined,
  '--waves': given.waves !== undefined,
  '--soak': given.soak !== undefined,
  '--concurrency': given.concurrency !== undefined,
  '--max-failures': given.maxFailures !== undefined,
  '--on-failure': given.onFailure !== undefined,
  '--skip-offline': given.skipOffline === true,
  '--when-online': given.whenOnline === true,
  '--expires': given.expires !== undefined,
  '--detach': given.detach === true,
});

/** Returns the members of a plan or apply request. Members that an older orchestrator would reject are sent only if given. */
export const paceBody = (context: Context, pace: Pace) => ({
  concurrency: pace.concurrency ?? null,
  canary: pace.canary ?? null,
  max_failures: pace.maxFailures ?? null,
  ...(pace.waves === undefined ? {} : { waves: [...pace.waves] }),
  ...(pace.soakSecs === undefined ? {} : { soak_secs: pace.soakSecs }),
  ...(pace.onFailure === undefined ? {} : { on_failure: pace.onFailure }),
  ...(pace.skipOffline === undefined ? {} : { skip_offline: pace.skipOffline }),
  ...(pace.whenOnlineSecs === undefined ? {} : { when_online_secs: pace.whenOnlineSecs }),
  progress: showsResources(context),
});

/** Returns whether single resources are shown: only by a live line. */
export const showsResources = ({ streams }: Context): boolean => streams.stderr.isTTY === true;
