/** The order of a run over many agents: canaries first, so many at a time, and no further one once too many have failed. */

export interface WalkResult {
  readonly status: 'succeeded' | 'failed' | 'unreachable' | 'skipped';
}

export interface WalkOptions<A, R extends WalkResult> {
  readonly agents: readonly A[];
  readonly concurrency: number;
  /** So many connected agents go first; the rest follows when all of them have succeeded. */
  readonly canary: number;
  /** Once so many have failed, no further agent starts; null for no bound. Unreachable ones have not failed. */
  readonly maxFailures: number | null;
  readonly isConnected: (agent: A) => boolean;
  /** Why no further agent is to start, such as that it was cancelled; null while they may. */
  readonly halted: () => string | null;
  /** Never rejects. */
  readonly run: (agent: A) => Promise<R>;
  readonly skip: (agent: A, why: string) => R;
  /** Told of each result as it comes; the next agent of that place waits for it. */
  readonly onResult: (result: R) => Promise<void>;
}

/** The results in the order of the agents. */
export async function walk<A, R extends WalkResult>(options: WalkOptions<A, R>): Promise<readonly R[]> {
  const { agents, concurrency, canary, maxFailures, run, skip, onResult } = options;
  const results = new Map<A, R>();
  let failures = 0;
  let failedCanaries = 0;
  const stopReason = (): string | null => {
    if (failedCanaries > 0) return `not started: ${failedCanaries} of ${canary} canary agents did not succeed`;
    if (maxFailures !== null && failures >= maxFailures)
      return `not started: ${failures === 1 ? '1 agent has' : `${failures} agents have`} failed`;
    return options.halted();
  };
  const visit = async (agent: A): Promise<R> => {
    const why = stopReason();
    const result = why === null ? await run(agent) : skip(agent, why);
    if (result.status === 'failed') failures += 1;
    results.set(agent, result);
    await onResult(result);
    return result;
  };
  const crew = async (members: readonly A[]): Promise<readonly R[]> => {
    const visited: R[] = [];
    const left = members.values();
    const worker = async () => {
      for (const agent of left) visited.push(await visit(agent));
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, members.length) }, worker));
    return visited;
  };
  const first = new Set(canary > 0 ? agents.filter(options.isConnected).slice(0, canary) : []);
  if (first.size > 0) {
    failedCanaries = (await crew([...first])).filter(({ status }) => status !== 'succeeded').length;
  }
  await crew(agents.filter((agent) => !first.has(agent)));
  return agents.flatMap((agent) => results.get(agent) ?? []);
}
