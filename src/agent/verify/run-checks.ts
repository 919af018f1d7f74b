/** Runs health checks side by side until each has passed once or its time is over. */
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../kernel/clock.js';
import { Fault } from '../../kernel/fault.js';
import { type CheckReport, type DesiredCheck, MAX_REASON } from '../../resources/checks/check.js';
import type { CommandResult } from '../../resources/command.js';
import type { Host } from '../../resources/host.js';
import { isTainted, secretValues } from '../../resources/tainted-body.js';
import type { RunContent } from '../../wire/parts.js';
import { OutputScrub, withheld } from '../converge/discretion.js';
import { Masking } from '../converge/masking.js';
import { attempt } from './attempt.js';
import type { Attempt } from './attempt-result.js';

interface RunChecksOptions {
  readonly clock: Clock;
  /** Ends every check at once. */
  readonly signal: AbortSignal;
  /** Creates a view of the machine whose commands end with the signal. */
  readonly createHost: (signal: AbortSignal) => Host;
  /** Modules whose checks do not run, because a resource of theirs failed [default: none]. */
  readonly without?: ReadonlySet<string>;
  /** Called every `ALIVE_EVERY` until the checks have ended. */
  readonly onAlive?: () => void;
}

/** Attempts at the same time. */
const CHECKS_AT_ONCE = 8;
/** Milliseconds between two attempts: at first, and at most. */
const PAUSE = { first: 250, most: 2_000 } as const;
/** Milliseconds between two signs of life, well below the silence after which an orchestrator gives up. */
const ALIVE_EVERY = 10_000;
/** Bytes of all reasons as JSON, so that the report fits into a frame. */
const REASONS_BYTES = 512 * 1024;

/**
 * Runs the health checks of a run, whose other secrets a program may print as well. Returns a report for each check, in order.
 * Never throws: failures are in the reports.
 */
export async function runChecks(
  { verify: checks = [], resources, removals }: RunContent,
  { clock, signal, createHost, without = new Set(), onAlive }: RunChecksOptions,
): Promise<readonly CheckReport[]> {
  const stopper = new AbortController();
  // Each attempt and each pause listens.
  setMaxListeners(0, stopper.signal);
  // Commands finish when the agent stops, unless they are cancelled.
  const stop = () => stopper.abort(new Fault('cancelled', 'the health checks were stopped'));
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  const alive = setInterval(() => onAlive?.(), ALIVE_EVERY);
  const context: CheckContext = {
    clock,
    since: clock.monotonic(),
    signal: stopper.signal,
    host: createHost(stopper.signal),
    scrub: new OutputScrub([...resources, ...removals, ...checks].flatMap(secretValues)),
    slots: new Slots(CHECKS_AT_ONCE),
    reasonBytes: Math.floor(REASONS_BYTES / Math.max(1, checks.length)),
  };
  try {
    return await Promise.all(
      checks.map((check, index) => (without.has(check.module) ? notRun(index) : runCheck(check, index, context))),
    );
  } finally {
    clearInterval(alive);
    signal.removeEventListener('abort', stop);
  }
}

const notRun = (index: number): CheckReport => ({
  index,
  status: 'not_run',
  duration_ms: 0,
  reason: 'a resource of its module failed or was skipped',
});

interface CheckContext {
  readonly clock: Clock;
  /** Start of all checks in monotonic milliseconds. */
  readonly since: number;
  readonly signal: AbortSignal;
  readonly host: Host;
  /** Knows the secrets of the whole run. */
  readonly scrub: OutputScrub;
  readonly slots: Slots;
  /** Maximum bytes of a reason as JSON. */
  readonly reasonBytes: number;
}

async function runCheck(check: DesiredCheck, index: number, context: CheckContext): Promise<CheckReport> {
  const { clock, since, signal, host, slots, scrub } = context;
  const quotable = isTainted(check) ? withheld : (result: CommandResult) => scrub.result(result);
  const elapsed = () => Math.max(0, Math.round(clock.monotonic() - since));
  const report = (status: CheckReport['status'], reason: string | null): CheckReport => ({
    index,
    status,
    duration_ms: elapsed(),
    reason: reason === null ? null : shown(check, reason, context),
  });
  const limit = check.within_secs * 1000;
  const lasted = (reason: string) => `${reason}, for ${Math.round(elapsed() / 1000)} s`;
  let last: string | null = null;
  for (let pause: number = PAUSE.first; ; pause = Math.min(2 * pause, PAUSE.most)) {
    const found = await slots.use((): Promise<Attempt> => {
      if (signal.aborted) return Promise.resolve(STOPPED);
      // The first attempt has its full length, however long the check waited for its turn.
      const left = last === null ? limit : limit - elapsed();
      // An attempt without time would end with less to say than the one before.
      if (last !== null && left < PAUSE.first) return Promise.resolve({ is: 'impossible', reason: lasted(last) });
      const timeoutMs = Math.max(1, Math.min(check.timeout_secs * 1000, left));
      return attempt(check, { host, signal, timeoutMs, quotable });
    });
    if (found.is === 'healthy') return report('healthy', null);
    if (signal.aborted) return report('not_run', last);
    if (found.is === 'impossible') return report('unhealthy', found.reason);
    const isRetried = last !== null;
    last = found.reason.trim();
    if (elapsed() + pause >= limit) {
      return report('unhealthy', isRetried ? lasted(last) : last);
    }
    await pauseFor(pause, signal);
  }
}

const STOPPED: Attempt = { is: 'unhealthy', reason: 'stopped' };

async function pauseFor(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await delay(milliseconds, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Masks the secrets of a reason, makes it one line of visible characters, and cuts it. */
function shown(check: DesiredCheck, reason: string, { reasonBytes, scrub }: CheckContext): string {
  const masked = scrub.whole(new Masking({ source: check }).sentence(reason));
  let text = masked
    .split(/[\r\n]/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' / ')
    .replaceAll(/\p{Cc}/gu, ' ')
    .slice(0, MAX_REASON - 1);
  const isCut = () => Buffer.byteLength(JSON.stringify(text)) > reasonBytes;
  while (text !== '' && isCut()) text = text.slice(0, Math.floor(text.length * 0.8));
  // A cut may have left half a character.
  return text.replace(/[\ud800-\udbff]$/, '');
}

/** Lets a number of tasks run at the same time, in the order in which they came. */
class Slots {
  private free: number;
  private readonly waiting: (() => void)[] = [];

  constructor(count: number) {
    this.free = count;
  }

  async use<T>(task: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else await new Promise<void>((admit) => this.waiting.push(admit));
    try {
      return await task();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.free += 1;
      else next();
    }
  }
}
