/** Walks over many agents in memory: canaries first, within the bounds of `walk.ts`. */
import { EMPTY_TALLY, firstWindow, nextStep, type WaveTally } from './walk.js';

export interface WalkResult {
  readonly status: 'succeeded' | 'failed' | 'unreachable' | 'skipped';
}

export interface WalkOptions<A, R extends WalkResult, K = R> {
  readonly agents: readonly A[];
  /** Maximum number of agents in flight. */
  readonly concurrency: number;
  /** Number of connected agents that go first. The others start only after all canaries succeed. */
  readonly canary: number;
  /** Number of failed agents after which no other agent starts; null for no limit. Unreachable agents do not count. */
  readonly maxFailures: number | null;
  readonly isConnected: (agent: A) => boolean;
  /** Reason why no other agent may start, such as a cancellation; null while agents may start. */
  readonly stopReason: () => string | null;
  /** Never rejects. */
  readonly run: (agent: A) => Promise<R>;
  readonly skip: (agent: A, why: string) => R;
  /** Receives each result as it arrives, and returns what to keep of it. The slot of that agent stays taken until then. */
  readonly onResult: (result: R) => Promise<K>;
}

type Tally = { -readonly [K in keyof WaveTally]: WaveTally[K] };

/** Runs all agents and returns what was kept of the results, in the order of `agents`. */
export async function walk<A, R extends WalkResult, K = R>(options: WalkOptions<A, R, K>): Promise<readonly K[]> {
  const { agents, concurrency, maxFailures, stopReason, run, skip, onResult } = options;
  const canaries = new Set(options.canary > 0 ? agents.filter(options.isConnected).slice(0, options.canary) : []);
  const others = agents.filter((agent) => !canaries.has(agent));
  const groups = [[...canaries], others].filter((group) => group.length > 0);
  const bounds = { concurrency, hasCanaries: canaries.size > 0, maxFailures, soak: 0 };
  // A canary that was asked for begins slowly even if none is connected.
  const slow = options.canary > 0 ? 1 : firstWindow(bounds, 1);
  const waves = groups.map((group): Tally => ({ ...EMPTY_TALLY, ready: group.length }));
  const queues = groups.map((group) => group.values());
  const kept = new Map<A, K>();
  let window = slow;
  let passed = 0;

  /** Takes the next agent of the current wave. */
  const take = (): { readonly agent: A; readonly tally: Tally } | null => {
    const tally = waves[passed];
    const next = queues[passed]?.next();
    if (tally === undefined || next === undefined || next.done) return null;
    tally.ready -= 1;
    tally.running += 1;
    return { agent: next.value, tally };
  };
  const end = async (agent: A, tally: Tally, result: R): Promise<void> => {
    const { status } = result;
    if (status === 'succeeded') window += 1;
    else if (status === 'failed') window = slow;
    kept.set(agent, await onResult(result));
    tally.running -= 1;
    const isMissed = canaries.has(agent) && status !== 'succeeded';
    if (status === 'succeeded') tally.succeeded += 1;
    else if (status === 'failed' || isMissed) tally.failed += 1;
    else tally.skipped += 1;
  };
  const skipRest = async (why: string): Promise<void> => {
    for (; passed < waves.length; passed += 1) {
      for (let next = take(); next !== null; next = take()) await end(next.agent, next.tally, skip(next.agent, why));
    }
  };

  await new Promise<void>((resolve, reject) => {
    const advance = (): void => {
      for (;;) {
        const step = nextStep({ bounds, waves, passed, window, soakEnd: null, now: 0 });
        if (step.do === 'finish') {
          resolve();
          return;
        }
        const why = step.do === 'halt' ? `not started: ${step.reason}` : stopReason();
        if (why !== null) {
          if (waves.every(({ running }) => running === 0)) skipRest(why).then(resolve, reject);
          return;
        }
        if (step.do === 'pass') passed += 1;
        else if (step.do !== 'start') return;
        else {
          const next = take();
          if (next === null) return;
          const { agent, tally } = next;
          run(agent)
            .then((result) => end(agent, tally, result))
            .then(advance, reject);
        }
      }
    };
    advance();
  });
  return agents.flatMap((agent) => kept.get(agent) ?? []);
}
