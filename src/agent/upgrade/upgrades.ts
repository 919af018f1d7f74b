/**
 * Upgrades of the agent: fetches a release, waits until nothing runs, and starts its trial, which restarts the agent and brings the
 * old release back if the new one does not reach the orchestrator.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { SecureContext } from 'node:tls';
import { Fault, isFault, messageOf } from '../../kernel/fault.js';
import type { Logger } from '../../kernel/logger.js';
import {
  currentRelease,
  RELEASE_PLACES,
  type ReleasePlaces,
  replaceableRelease,
} from '../../release/installed-releases.js';
import type { OwnRelease } from '../../release/own-release.js';
import { hasSystemd, isInUnit, systemctl } from '../../service/systemd.js';
import { startUnit, stopUnit, UNIT_PLACES } from '../../service/unit-files.js';
import { AGENT_UNIT, SERVE_UNIT, UPGRADE_UNIT, upgradeUnit } from '../../service/units.js';
import type { AgentMessageOf, OrchestratorMessageOf } from '../../wire/messages.js';
import type { DownloadSource } from '../link/download.js';
import { fetchRelease } from './fetch-release.js';
import { forgetUpgrade, isFinal, readUpgrade, type UpgradeRecord, writeUpgrade } from './upgrade-record.js';

type UpgradeRequest = OrchestratorMessageOf<'upgrade' | 'upgrade_ack'>;
type UpgradeReport = AgentMessageOf<'upgrade_report'>;

interface UpgradesOptions {
  readonly dataDir: string;
  readonly logger: Logger;
  /** The agent's own key and certificate, from `dialContext`. */
  readonly context: SecureContext;
  /** Returns what runs now, such as `an apply`; null for nothing. */
  readonly busyWith: () => Promise<string | null>;
  /** True ends the connection to the orchestrator until false is passed, so that nothing new begins. */
  readonly setDetached: (detached: boolean) => void;
}

const places: ReleasePlaces = RELEASE_PLACES;
const tools = { systemctl, places: UNIT_PLACES };
/** Interval in milliseconds at which running work and the trial are looked at. */
const LOOK_MS = 1_000;
/** Milliseconds for the last results to reach the orchestrator before the connection ends. */
const REPORT_MS = 500;
/** Milliseconds after which an agent that the trial has not restarted takes up its connection again. */
const RESTART_MS = 120_000;

export class Upgrades {
  private readonly options: UpgradesOptions;
  private readonly listeners = new Set<(report: UpgradeReport) => void>();
  private readonly stopped = new AbortController();
  private record: UpgradeRecord | null;
  private source: DownloadSource | null = null;
  private work: Promise<void> | null = null;

  constructor(options: UpgradesOptions) {
    this.options = options;
    this.record = this.recordOfBefore();
    if (this.record?.state === 'switching') this.work = this.followTrial();
  }

  subscribe(listener: (report: UpgradeReport) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Sets the address and key of the orchestrator, from which releases are downloaded. */
  setSource(source: DownloadSource): void {
    this.source = source;
  }

  /** Returns the state of the last upgrade; null when the orchestrator knows how it ended. */
  report(): UpgradeReport | null {
    return this.record === null ? null : reportOf(this.record);
  }

  handle(request: UpgradeRequest): void {
    if (request.type === 'upgrade_ack') {
      if (this.record?.upgrade_id === request.upgrade_id && isFinal(this.record)) this.forget();
      return;
    }
    if (this.record !== null && !isFinal(this.record)) {
      if (this.record.upgrade_id !== request.upgrade_id) this.send(refusalOf(request, underWay(this.record)));
      return;
    }
    this.work = this.upgrade(request).catch(async (error: unknown) => {
      if (this.stopped.signal.aborted) return;
      // A unit that could not be started must not begin at the next boot what is reported as failed.
      if (this.record?.state === 'switching') await stopUnit(tools, UPGRADE_UNIT).catch(() => undefined);
      this.options.setDetached(false);
      const fault = isFault(error) ? error : new Fault('upgrade_failed', messageOf(error));
      this.options.logger.error('the upgrade failed', { version: request.version, reason: fault.message });
      const hint = fault.hint === undefined ? '' : ` (${fault.hint})`;
      this.note({
        ...begunBy(request),
        state: 'failed',
        error: { code: fault.code, message: `${fault.message}${hint}` },
      });
    });
  }

  /** Resolves once no download and no wait is left. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.work;
  }

  /** Returns the record of the last run of the agent. What that did not finish has failed. */
  private recordOfBefore(): UpgradeRecord | null {
    const { dataDir, logger } = this.options;
    try {
      const record = readUpgrade(dataDir);
      if (record === null || isFinal(record) || record.state === 'switching') return record;
      const error = { code: 'upgrade_failed', message: 'the agent was restarted before it had switched' };
      const failed: UpgradeRecord = { ...record, state: 'failed', waits_for: null, error };
      writeUpgrade(dataDir, failed);
      return failed;
    } catch (error) {
      logger.warn('the record of the last upgrade is not used', { reason: messageOf(error) });
      return null;
    }
  }

  private async upgrade(request: OrchestratorMessageOf<'upgrade'>): Promise<void> {
    const { logger, context } = this.options;
    const { version, force } = request;
    const { source } = this;
    const running = requireUpgradable();
    if (source === null) throw new Fault('internal', 'the address of the orchestrator is not known');
    logger.info('an upgrade of the agent begins', { version });
    this.note({ ...begunBy(request), state: 'downloading' });
    const release = await fetchRelease({
      wanted: request,
      source,
      context,
      places,
      running,
      signal: this.stopped.signal,
    });
    if (!force) await this.untilIdle(request);
    if (this.stopped.signal.aborted) return;
    const trial = { release, previous: currentRelease(places), seconds: request.trial_secs, begun: 0 };
    const record: UpgradeRecord = { ...begunBy(request), state: 'switching', trial };
    // The trial reads it.
    writeUpgrade(this.options.dataDir, record);
    this.note(record, false);
    logger.info('the agent switches to another release and restarts', { version, release });
    await startUnit(tools, UPGRADE_UNIT, upgradeUnit(running.directory, this.options.dataDir));
    await this.followTrial();
  }

  /**
   * Resolves, without a connection to the orchestrator, once nothing runs; or when the agent stops. Throws `upgrade_failed` after
   * the time limit.
   */
  private async untilIdle(request: OrchestratorMessageOf<'upgrade'>): Promise<void> {
    const { busyWith, setDetached } = this.options;
    const end = performance.now() + request.wait_secs * 1000;
    while (!this.stopped.signal.aborted) {
      const busy = await busyWith();
      if (busy === null) {
        await this.pause(REPORT_MS);
        setDetached(true);
        // Work that began in the meantime is waited for as well.
        if ((await busyWith()) === null) return;
        setDetached(false);
      } else if (performance.now() >= end) {
        throw new Fault('upgrade_failed', `${busy} did not end within ${request.wait_secs} seconds`, {
          hint: 'upgrade again with --force to interrupt it',
        });
      } else if (this.record?.waits_for !== busy) {
        this.note({ ...begunBy(request), state: 'waiting', waits_for: busy });
      }
      await this.pause(LOOK_MS);
    }
  }

  /** Reports how the trial ends. Resolves then, or when the agent stops. */
  private async followTrial(): Promise<void> {
    const { setDetached } = this.options;
    const began = performance.now();
    while (!this.stopped.signal.aborted) {
      await this.pause(LOOK_MS);
      const record = this.readTrial();
      if (record === null || isFinal(record)) {
        setDetached(false);
        if (record === null) this.record = null;
        else this.note(record, false);
        return;
      }
      if (!existsSync(join(UNIT_PLACES.own, UPGRADE_UNIT)) && !isFinal(this.readTrial() ?? record)) {
        setDetached(false);
        const error = { code: 'upgrade_failed', message: `${UPGRADE_UNIT} was removed before the trial had ended` };
        return this.note({ ...record, state: 'failed', error });
      }
      if (performance.now() - began > RESTART_MS) setDetached(false);
    }
  }

  private readTrial(): UpgradeRecord | null {
    try {
      return readUpgrade(this.options.dataDir);
    } catch {
      return this.record;
    }
  }

  /** Notes a new state, on disk as well unless it is there already, and reports it. */
  private note(record: UpgradeRecord, writes = true): void {
    const { dataDir, logger } = this.options;
    this.record = record;
    try {
      if (writes) writeUpgrade(dataDir, record);
    } catch (error) {
      logger.warn('the state of the upgrade is not on disk', { reason: messageOf(error) });
    }
    this.send(reportOf(record));
  }

  private forget(): void {
    this.record = null;
    forgetUpgrade(this.options.dataDir);
  }

  private send(report: UpgradeReport): void {
    for (const listener of this.listeners) listener(report);
  }

  private pause(milliseconds: number): Promise<void> {
    const { signal } = this.stopped;
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

const begunBy = ({ upgrade_id, version }: OrchestratorMessageOf<'upgrade'>): UpgradeRecord => ({
  format: 1,
  upgrade_id,
  version,
  state: 'downloading',
  waits_for: null,
  error: null,
  trial: null,
});

const reportOf = ({ upgrade_id, version, state, waits_for, error }: UpgradeRecord): UpgradeReport => ({
  type: 'upgrade_report',
  upgrade_id,
  version,
  state,
  waits_for,
  error,
});

const refusalOf = (request: OrchestratorMessageOf<'upgrade'>, message: string): UpgradeReport => ({
  ...reportOf({ ...begunBy(request), state: 'failed' }),
  error: { code: 'upgrade_failed', message },
});

const underWay = ({ version, state }: UpgradeRecord): string => `an upgrade to ${version} is under way (${state})`;

/**
 * Returns the release that this agent runs from. Throws `upgrade_unsupported` for an agent that cannot replace itself: one that is
 * no service, was not installed from a package, or shares its release with an orchestrator.
 */
function requireUpgradable(): OwnRelease {
  const release = process.platform === 'linux' ? replaceableRelease(places) : null;
  if (release === null) {
    throw unsupported(
      'this agent was not installed from a package',
      'install orch there from a package or with the line of "orch enroll create", or upgrade it as it was installed',
    );
  }
  if (!hasSystemd() || !isInUnit(AGENT_UNIT)) {
    throw unsupported(`this agent does not run as ${AGENT_UNIT}`, 'run there: orch agent install');
  }
  if (Object.values(UNIT_PLACES).some((place: string) => isEnabled(place, SERVE_UNIT))) {
    throw unsupported(
      'this machine also runs the orchestrator',
      'upgrade it with a newer package, which contains the agent as well',
    );
  }
  return release;
}

const unsupported = (why: string, hint: string): Fault => new Fault('upgrade_unsupported', why, { hint });

/** True for a unit that starts at each boot; a package brings the one of the orchestrator to every machine. */
const isEnabled = (place: string, unit: string): boolean => existsSync(join(place, 'multi-user.target.wants', unit));
