/**
 * The walk over many agents: canaries first, a limited number in flight, and a stop after too many failures.
 *
 * With canaries or a failure limit the walk begins with one agent in flight (slow start). Each success adds one, so the
 * number doubles from round to round; a failure resets it to one. The failure limit is never exceeded, because no more
 * agents are in flight than may still fail.
 */

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

/** Runs all agents and returns what was kept of the results, in the order of `agents`. */
export async function walk<A, R extends WalkResult, K = R>(options: WalkOptions<A, R, K>): Promise<readonly K[]> {
  const { agents, concurrency, canary, maxFailures, run, skip, onResult } = options;
  const kept = new Map<A, K>();
  const canaries = new Set(canary > 0 ? agents.filter(options.isConnected).slice(0, canary) : []);
  const slowStart = canary > 0 || maxFailures !== null ? 1 : Number.POSITIVE_INFINITY;
  let window = slowStart;
  let failures = 0;
  let failedCanaries = 0;
  const stopReason = (): string | null => {
    if (failedCanaries > 0) return `not started: ${failedCanaries} of ${canaries.size} canary agents did not succeed`;
    if (maxFailures !== null && failures >= maxFailures)
      return `not started: ${failures === 1 ? '1 agent has' : `${failures} agents have`} failed`;
    return options.stopReason();
  };
  const room = (): number => {
    const mayFail = maxFailures === null ? Number.POSITIVE_INFINITY : Math.max(1, maxFailures - failures);
    return Math.min(concurrency, window, mayFail);
  };
  const visit = async (agent: A): Promise<void> => {
    const why = stopReason();
    const result = why === null ? await run(agent) : skip(agent, why);
    if (result.status === 'succeeded') window += 1;
    else if (result.status === 'failed') {
      failures += 1;
      window = slowStart;
    }
    if (why === null && result.status !== 'succeeded' && canaries.has(agent)) failedCanaries += 1;
    kept.set(agent, await onResult(result));
  };
  const visitAll = (members: readonly A[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const left = members.values();
      let inFlight = 0;
      const fill = () => {
        while (inFlight < room()) {
          const next = left.next();
          if (next.done) {
            if (inFlight === 0) resolve();
            return;
          }
          inFlight += 1;
          visit(next.value).then(() => {
            inFlight -= 1;
            fill();
          }, reject);
        }
      };
      fill();
    });
  await visitAll([...canaries]);
  await visitAll(agents.filter((agent) => !canaries.has(agent)));
  return agents.flatMap((agent) => kept.get(agent) ?? []);
}
