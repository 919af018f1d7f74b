/** Copies between this machine and others, several at a time, and builds the outcome. */
import type { ApiClient } from '../../client/api-client.js';
import type { Agent } from '../../contract/agents.js';
import type { CopySum } from '../../copy/copy-tally.js';
import type { Fault } from '../../kernel/fault.js';
import type { Context } from '../context.js';
import { EXIT, exitStatusOfCode } from '../exit-status.js';
import { agentHandle, agentName, count, formatBytes } from '../format.js';
import { visitAgents } from '../nodes/visit-agents.js';
import { type Line, type Outcome, proseOf, styled } from '../outcome.js';
import { CopyRun, type CopyWork } from './copy-run.js';
import type { CopyPlan } from './copy-words.js';
import { Download, localPlace, placeOfMachine } from './download.js';
import { Upload } from './upload.js';

/** A machine, and its paths. */
export interface MachineCopy {
  readonly agent: Agent;
  readonly paths: readonly string[];
}

export interface AgentsCopy {
  readonly plan: CopyPlan;
  readonly copies: readonly MachineCopy[];
  /** True to give each machine a directory of its own here. */
  readonly isSpread: boolean;
  readonly recursive: boolean;
  readonly preserve: boolean;
  /** Maximum number of machines at a time. */
  readonly batch: number;
}

interface Result {
  readonly agent: Agent;
  readonly sum: CopySum;
  readonly fault: Fault | null;
}

const NOTHING: CopySum = { files: 0, bytes: 0, failed: 0, sha256: null };

/** Copies, and returns what was copied. Throws the fault of a single machine, and those that concern all. */
export async function copyAgents(context: Context, api: ApiClient, copy: AgentsCopy): Promise<Outcome> {
  const { copies, batch } = copy;
  const { signal } = context;
  const pathsOf = new Map(copies.map(({ agent, paths }) => [agent, paths]));
  const isSingle = copies.length === 1;
  const live = new LiveCopy(context, copies.length);
  const sums = new Map<Agent, CopySum>();
  try {
    const results = await visitAgents<Result>({
      agents: copies.map(({ agent }) => agent),
      concurrency: batch,
      signal,
      isSingle,
      visit: async (agent) => {
        const run = new CopyRun({ api, clock: context.clock, nodeId: agent.node_id, signal, ...live.listener(agent) });
        try {
          await copyOne(run, { ...copy, agent, paths: pathsOf.get(agent) ?? [] });
        } finally {
          sums.set(agent, run.sum);
        }
        return { agent, sum: run.sum, fault: null };
      },
      failed: (agent, fault) => ({ agent, sum: sums.get(agent) ?? NOTHING, fault }),
      skipped: (agent) => ({ agent, sum: NOTHING, fault: null }),
      statusOf: (result) => (isGood(result) ? 'succeeded' : 'failed'),
      onResult: ({ agent, fault }) => {
        live.ended();
        if (fault !== null) context.warn(`${agentName(agent)}: ${fault.message}`);
      },
    });
    const bodies = results.map((result) => bodyOf(result, copy));
    return {
      body: isSingle ? bodies[0] : bodies,
      names: results.filter(isGood).map(({ agent }) => agentHandle(agent)),
      view: proseOf(results.map(lineOf)),
      exitStatus: statusOf(results),
    };
  } finally {
    context.progress.end();
  }
}

async function copyOne(
  run: CopyRun,
  { plan, agent, paths, isSpread, recursive, preserve }: AgentsCopy & MachineCopy,
): Promise<void> {
  let work: CopyWork;
  if (plan.direction === 'write') {
    work = new Upload({ sources: plan.sources, path: plan.target.path, recursive, preserve });
  } else {
    const place = isSpread
      ? await placeOfMachine(plan.target, agentHandle(agent))
      : await localPlace(plan.target, paths.length > 1);
    work = new Download({ paths, place, recursive, preserve });
  }
  try {
    await run.run(work);
  } finally {
    await work.close();
  }
}

const isGood = ({ fault, sum }: Result): boolean => fault === null && sum.failed === 0;

function statusOf(results: readonly Result[]): number {
  const bad = results.filter((result) => !isGood(result));
  if (bad.length === 0) return EXIT.done;
  const isOffline = ({ fault }: Result) => fault !== null && exitStatusOfCode(fault.code) === EXIT.offline;
  return bad.every(isOffline) ? EXIT.offline : EXIT.partlyFailed;
}

function lineOf(result: Result): Line {
  const { agent, sum, fault } = result;
  const { files, bytes, failed, sha256 } = sum;
  const copied = `${agentName(agent)}: ${count(files, 'file')}, ${formatBytes(bytes)}${sha256 === null ? '' : `, SHA-256 ${sha256}`}`;
  if (isGood(result)) return copied;
  const what = failed > 0 ? `${failed} not copied` : 'not finished';
  return [copied, styled('bad', fault === null ? `, ${what}` : `, ${what}: ${fault.message}`)];
}

const bodyOf = ({ agent, sum, fault }: Result, { plan, copies }: AgentsCopy) => ({
  node_id: agent.node_id,
  node: agentName(agent),
  direction: plan.direction,
  paths: copies.find((copy) => copy.agent === agent)?.paths ?? [],
  ...sum,
  error: fault === null ? null : { code: fault.code, message: fault.message },
});

/** The live line: machines, files, bytes, and the rate of the last seconds. */
class LiveCopy {
  private readonly context: Context;
  private readonly machines: number;
  private readonly beginning: number;
  private ends = 0;
  private files = 0;
  private bytes = 0;
  private mark: { readonly at: number; readonly bytes: number };
  private rate = 0;

  constructor(context: Context, machines: number) {
    this.context = context;
    this.machines = machines;
    this.beginning = context.clock.monotonic();
    this.mark = { at: this.beginning, bytes: 0 };
  }

  /** Returns what the copy of one machine reports to. */
  listener(agent: Agent) {
    const name = agentName(agent);
    return {
      onBytes: (bytes: number) => {
        this.bytes += bytes;
        this.show();
      },
      onFile: () => {
        this.files += 1;
        this.show();
      },
      onFailed: (path: string, reason: string) => this.context.warn(`${name}: ${path}: ${reason}`),
      onCut: (cause: Fault) =>
        this.context.note(`${name}: the connection was lost, and the copy goes on when it is back: ${cause.message}`),
    };
  }

  ended(): void {
    this.ends += 1;
    this.show();
  }

  private show(): void {
    this.context.progress.live(() => {
      const ends = this.machines > 1 ? `${this.ends} of ${this.machines} machines  ` : '';
      return `${ends}${count(this.files, 'file')}  ${formatBytes(this.bytes)}  ${formatBytes(this.rateNow())}/s`;
    });
  }

  /** Returns bytes per second, over at least a second. */
  private rateNow(): number {
    const now = this.context.clock.monotonic();
    const seconds = (now - this.mark.at) / 1000;
    if (seconds >= 1) {
      this.rate = Math.round((this.bytes - this.mark.bytes) / seconds);
      this.mark = { at: now, bytes: this.bytes };
    } else if (this.rate === 0) {
      this.rate = Math.round((this.bytes * 1000) / Math.max(now - this.beginning, 1));
    }
    return this.rate;
  }
}
