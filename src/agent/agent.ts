/** The agent: holds its data directory and key, reconnects with back-off until it is stopped, and serves each connection. */
import { join } from 'node:path';
import type { WebSocket } from 'ws';
import { type DataDirectory, holdDataDirectory } from '../identity/data-directory.js';
import { nodeIdOf, publicKeyOfKeyObject } from '../identity/key-object.js';
import { requirePinned } from '../identity/pin.js';
import { loadOrCreateKey } from '../identity/private-key.js';
import { type Clock, toTimestamp } from '../kernel/clock.js';
import { Fault, isFault, messageOf } from '../kernel/fault.js';
import type { PublicKeyHex } from '../kernel/ids.js';
import type { Logger } from '../kernel/logger.js';
import { CLOSE } from '../wire/limits.js';
import { type AgentState, type LinkState, writeAgentState } from './agent-status.js';
import { ContentDownloads } from './content/content-downloads.js';
import { createAddressSource, type DiscoveryPort } from './discovery/address-source.js';
import type { AddressCandidate, AddressSource } from './discovery/discovered-address.js';
import type { EngineReport, RunEngine } from './engine/run-engine.js';
import { OwnFactsReader } from './facts/own-facts.js';
import { type MachineFacts, readFacts } from './facts.js';
import { Enrolment, type OfferedToken, Trust, type TrustOptions } from './first-contact.js';
import type { Forwards } from './forward/forwards.js';
import { forgetLoss, readLoss } from './journal/journal-loss.js';
import { Backoff } from './link/backoff.js';
import { dialContext, dialOrchestrator, isRefusal } from './link/dial.js';
import { formatAddress, type OrchestratorAddress } from './link/orchestrator-address.js';
import { Metrics, type MetricsSettings } from './metrics.js';
import type { Permissions } from './permissions.js';
import { runSession, type SessionEnd } from './session.js';
import type { Terminals } from './terminal/terminals.js';
import { Upgrades } from './upgrade/upgrades.js';

export interface AgentOptions extends TrustOptions {
  /** Address of the orchestrator, or the UDP port on which the agent waits for discovery packets with it. */
  readonly target: OrchestratorAddress | DiscoveryPort;
  /** Its orchestrator key equals `orchestratorKey`. */
  readonly enrolmentToken?: OfferedToken | undefined;
  /** Replaces the host name of the system. */
  readonly hostname?: string | undefined;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Called once the data directory is held. */
  readonly createEngine: (dataDir: string) => RunEngine;
  /** Called once the data directory is held; without it there are no remote terminals. */
  readonly createTerminals?: (dataDir: string) => Terminals;
  /** Called once the data directory is held; without it there are no forwards. */
  readonly createForwards?: (dataDir: string) => Forwards;
  /** Returns the current settings. */
  readonly metrics: () => MetricsSettings;
  /** Returns what the settings permit operators now. */
  readonly permissions: () => Permissions;
  /** Returns the directory of facts of one's own. */
  readonly factsDirectory: () => string;
  /**
   * True to end with `pin_mismatch` or `pin_missing` while no orchestrator has proved the expected key yet. An agent of a
   * service manager dials again instead, so that a fleet survives a wrong key at the orchestrator's address.
   */
  readonly endsUntrusted: boolean;
}

/** Maximum pause in milliseconds while terminals are open. */
const SOON = 5_000;
/** Maximum pause in milliseconds while an apply has to be confirmed. */
const AWAITED = 1_000;
const DIAL_TIMEOUT = 15_000;
/** Maximum pause in milliseconds after a peer proved another key. */
const UNTRUSTED_PAUSE = 300_000;
/** Milliseconds before the next attempt after a version mismatch. */
const VERSION_PAUSE = 60_000;
/** Minimum milliseconds between two connections of a rejected agent, and the maximum random addition. */
const REJECTED_PAUSE = 2_000;
const REJECTED_MORE = 28_000;

/**
 * Runs until `signal` aborts; then the group of resources that is being applied is finished first.
 * @throws Fault `agent_running`, `data_dir_invalid`, `key_…`, `journal_corrupt`, and with `endsUntrusted` `pin_mismatch` or
 * `pin_missing`
 */
export async function runAgent(options: AgentOptions, signal: AbortSignal): Promise<void> {
  const directory = hold(options.dataDir);
  try {
    const trust = new Trust(options);
    requireConsistent(trust, options);
    const engine = options.createEngine(options.dataDir);
    try {
      await requireJournal(engine, options.logger);
      const terminals = options.createTerminals?.(options.dataDir);
      const forwards = options.createForwards?.(options.dataDir);
      const addressSource = createAddressSource(options, trust);
      await addressSource.start();
      // Terminals stop first, while the link can still report their ends.
      const stop = () => Promise.all([terminals?.stop(), forwards?.stop()]);
      signal.addEventListener('abort', () => void stop(), { once: true });
      try {
        await new Agent(options, { trust, engine, addressSource, terminals, forwards }).run(signal);
      } finally {
        addressSource.stop();
        await stop();
      }
    } finally {
      await engine.stop();
    }
  } finally {
    directory.release();
  }
}

function hold(dataDir: string): DataDirectory {
  try {
    return holdDataDirectory(dataDir, 'orch agent');
  } catch (error) {
    if (!isFault(error, 'data_dir_locked')) throw error;
    throw new Fault('agent_running', `an agent runs already: ${error.message}`, {
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      ...(error.data === undefined ? {} : { data: error.data }),
      cause: error,
    });
  }
}

/** Handles a given key that contradicts the pinned one. The pinned key wins, because an orchestrator has proved it. */
function requireConsistent({ pinMismatch }: Trust, { endsUntrusted, logger }: AgentOptions): void {
  if (pinMismatch === null) return;
  if (endsUntrusted) throw pinMismatch;
  logger.error('the given key of the orchestrator is not used, the pinned one counts', {
    reason: pinMismatch.message,
    hint: pinMismatch.hint,
  });
}

/** Throws when the journal cannot be used: such an agent could neither apply nor report anything. A damaged journal is recovered. */
async function requireJournal(engine: RunEngine, logger: Logger): Promise<void> {
  const runs = await engine.inventory();
  if (runs.length > 0) logger.info('results of earlier applies wait for the orchestrator', { applies: runs.length });
}

interface AgentParts {
  readonly trust: Trust;
  readonly engine: RunEngine;
  readonly addressSource: AddressSource;
  readonly terminals: Terminals | undefined;
  readonly forwards: Forwards | undefined;
}

class Agent {
  private readonly options: AgentOptions;
  private readonly trust: Trust;
  private readonly engine: RunEngine;
  private readonly addressSource: AddressSource;
  private readonly terminals: Terminals | undefined;
  private readonly forwards: Forwards | undefined;
  private readonly context;
  private readonly metrics: Metrics;
  private readonly ownFacts: OwnFactsReader;
  private readonly enrolment: Enrolment;
  private readonly upgrades: Upgrades;
  private readonly downloads: ContentDownloads;
  private readonly detachment = new Detachment();
  /** ID of the apply that has to be confirmed on a new connection; null for none. */
  private awaited: string | null = null;
  /** Aborted to give up a connection, an attempt at one, or the pause before it, so that a new one is made. */
  private attempt = new AbortController();
  /** The dialled address as text. */
  private where = '';
  private readonly untrusted: Backoff;
  private readonly rejections: Backoff;
  private state: AgentState;
  /** True when nothing listened at the last dialled address. */
  private wasRefused = false;

  constructor(options: AgentOptions, { trust, engine, addressSource, terminals, forwards }: AgentParts) {
    const { dataDir, clock } = options;
    this.options = options;
    this.trust = trust;
    this.engine = engine;
    this.addressSource = addressSource;
    this.terminals = terminals;
    this.forwards = forwards;
    this.rejections = new Backoff({ random: options.random, last: REJECTED_MORE });
    this.untrusted = new Backoff({ random: options.random, last: UNTRUSTED_PAUSE });
    this.enrolment = new Enrolment(options.enrolmentToken, options.logger);
    this.metrics = new Metrics({ clock, settings: options.metrics });
    this.ownFacts = new OwnFactsReader({ directory: options.factsDirectory, now: () => clock.monotonic() });
    const privateKey = loadOrCreateKey(join(dataDir, 'identity.key'));
    this.context = dialContext(privateKey);
    this.upgrades = new Upgrades({
      dataDir,
      logger: options.logger,
      context: this.context,
      busyWith: () => this.busyWith(),
      setDetached: (detached) => this.detachment.set(detached),
    });
    const { logger } = options;
    this.downloads = new ContentDownloads({ dataDir, logger, clock, context: this.context });
    engine.setFetch?.((file) => this.downloads.fetch(file));
    this.state = {
      node_id: nodeIdOf(publicKeyOfKeyObject(privateKey)),
      orchestrator_key: trust.key,
      orchestrator: null,
      name: null,
      link: 'searching',
      since: toTimestamp(clock.now()),
      last_error: null,
      hint: null,
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    const { logger, random, clock } = this.options;
    const { addressSource } = this;
    const backoff = new Backoff({ random });
    logger.info('the agent starts', { node_id: this.state.node_id });
    this.metrics.start();
    const unsubscribe = this.engine.subscribe((report) => this.follow(report));
    while (!signal.aborted) {
      if (addressSource.candidate === null) this.note('searching', this.state.last_error, this.state.hint);
      await addressSource.untilKnown(signal);
      const { candidate: place } = addressSource;
      if (place === null) break;
      this.headFor(place);
      this.attempt = new AbortController();
      const since = clock.monotonic();
      this.wasRefused = false;
      const pause = await this.connectOnce(place, signal);
      if (signal.aborted) break;
      await this.detachment.ended(signal);
      if (this.awaited === null) backoff.ended(clock.monotonic() - since, this.wasRefused);
      const delay = pause ?? this.pauseBefore(backoff);
      // An apply that has to be confirmed, or was undone, ends the pause.
      this.attempt = new AbortController();
      const isOver = AbortSignal.any([signal, this.attempt.signal]);
      if (delay > 0 && (await addressSource.pause(delay, isOver))) backoff.reset();
    }
    unsubscribe();
    this.metrics.stop();
    await this.upgrades.stop();
    await this.downloads.stop();
    this.note('stopped', null);
    logger.info('the agent stops');
  }

  /** Makes a new connection when an apply has to be confirmed on one, and as soon as it was undone. */
  private follow(report: EngineReport): void {
    const isBegun = report.type === 'run_awaiting';
    const isUndone = report.type === 'run_finished' && report.run_id === this.awaited && report.end === 'rolled_back';
    if (report.type === 'run_finished' && report.run_id === this.awaited) this.awaited = null;
    if (isBegun) this.awaited = report.run_id;
    // After the session has sent the report.
    if (isBegun || (isUndone && this.state.link !== 'connected')) setImmediate(() => this.attempt.abort());
  }

  /** Returns the milliseconds before the next attempt. Attempts in the time of a confirmation do not count for those after it. */
  private pauseBefore(backoff: Backoff): number {
    if (this.awaited !== null) return Math.floor(this.options.random() * AWAITED);
    return backoff.next(this.terminals?.isInUse ? SOON : undefined);
  }

  private headFor({ address: target }: AddressCandidate): void {
    const where = formatAddress(target);
    if (where === this.where) return;
    this.where = where;
    this.state = { ...this.state, orchestrator: where };
    this.options.logger.info('connecting to the orchestrator', { orchestrator: where });
    this.note('connecting', null);
  }

  /** Serves one connection from dial to end. Returns the milliseconds before the next one, or null for the back-off's choice. */
  private async connectOnce(
    { address: target, announcedKey }: AddressCandidate,
    signal: AbortSignal,
  ): Promise<number | null> {
    const { logger } = this.options;
    try {
      const { socket, orchestratorKey } = await dialOrchestrator({
        ...target,
        context: this.context,
        pinned: this.trust.key,
        verifyPeer: (key) => {
          if (announcedKey !== null) requirePinned(announcedKey, key, this.where);
          this.trust.verify(key, this.where);
        },
        timeoutMs: DIAL_TIMEOUT,
        signal: AbortSignal.any([signal, this.attempt.signal]),
      });
      this.untrusted.reset();
      this.state = { ...this.state, orchestrator_key: orchestratorKey };
      this.terminals?.setAddress({ ...target, key: orchestratorKey });
      this.forwards?.setAddress({ ...target, key: orchestratorKey });
      this.upgrades.setSource({ ...target, key: orchestratorKey });
      this.downloads.setSource({ ...target, key: orchestratorKey });
      return this.ended(
        await this.serve(
          socket,
          orchestratorKey,
          AbortSignal.any([signal, this.detachment.signal, this.attempt.signal]),
        ),
      );
    } catch (error) {
      if (signal.aborted) return null;
      if (this.attempt.signal.aborted) return 0;
      if (await this.trust.confirm(error, this.where)) return 0;
      if (isFault(error, 'pin_mismatch', 'pin_missing')) return this.distrust(error);
      this.wasRefused = isRefusal(error);
      const hint = isFault(error) ? (error.hint ?? null) : null;
      const reason = messageOf(error);
      this.engine.unreached(reason);
      logger.warn('cannot connect to the orchestrator, trying again', {
        orchestrator: this.where,
        reason,
        ...(hint === null ? {} : { hint }),
      });
      this.note('disconnected', reason, hint);
      return null;
    }
  }

  /**
   * Handles a peer that has not proved the orchestrator's key: the agent does nothing for it and dials again later, because the
   * orchestrator may return to the address. Returns the pause in milliseconds.
   */
  private distrust(fault: Fault): number {
    const { logger, endsUntrusted } = this.options;
    this.note('untrusted', fault.message, fault.hint);
    if (!this.addressSource.abandon() && endsUntrusted && this.trust.key === null) throw fault;
    logger.error('the peer is not trusted, nothing is done for it and it is dialled again', {
      reason: fault.message,
      hint: fault.hint,
    });
    return this.untrusted.next();
  }

  /** Returns the facts of the machine, and what its settings permit now. */
  private facts(): MachineFacts {
    const { hostname, permissions } = this.options;
    const facts = readFacts({ hostname });
    return { ...facts, attributes: { ...facts.attributes, ...permissions() } };
  }

  private async serve(socket: WebSocket, orchestratorKey: PublicKeyHex, signal: AbortSignal): Promise<SessionEnd> {
    const { logger, clock } = this.options;
    const { enrolment, addressSource } = this;
    addressSource.setConnected(true);
    try {
      return await runSession(
        {
          socket,
          engine: this.engine,
          clock,
          logger,
          facts: () => this.facts(),
          ownFacts: (isFresh) => this.ownFacts.read(isFresh),
          sample: () => this.metrics.sample(),
          terminals: this.terminals,
          forwards: this.forwards,
          upgrades: this.upgrades,
          enrolmentToken: enrolment.offerTo(orchestratorKey),
          journalLoss: () => readLoss(this.options.dataDir),
          onLossReported: () => forgetLoss(this.options.dataDir),
          onTokenVerdict: (verdict) => enrolment.answered(verdict),
          onStatus: (status, name, reason) => {
            enrolment.statusReceived(status);
            this.rejections.reset();
            this.state = { ...this.state, name };
            if (status === 'approved') logger.info('connected to the orchestrator', { orchestrator: this.where, name });
            else if (reason === null)
              logger.info('waiting for approval by an operator', { node_id: this.state.node_id });
            else logger.error('an operator has to decide which machine is this agent', { reason, hint: COPIED });
            const problem = reason ?? enrolment.problem;
            this.note(status === 'approved' ? 'connected' : 'pending', problem, reason === null ? null : COPIED);
          },
        },
        signal,
      );
    } finally {
      addressSource.setConnected(false);
    }
  }

  private ended({ code, reason }: SessionEnd): number | null {
    const { logger } = this.options;
    if (code === CLOSE.version) {
      const fault = new Fault('protocol_mismatch', `the orchestrator does not speak with this agent: ${reason}`);
      const hint = 'install the same version of orch on both sides';
      logger.error(fault.message, { hint });
      this.note('disconnected', fault.message, hint);
      return VERSION_PAUSE;
    }
    if (code === CLOSE.rejected) {
      this.rejected(reason);
      return REJECTED_PAUSE + this.rejections.next();
    }
    if (code === CLOSE.duplicate) {
      logger.error('the orchestrator turned this machine away', { code, reason, hint: COPIED });
      this.note('disconnected', reason, COPIED);
      return null;
    }
    logger.warn('the connection to the orchestrator ended', { code, reason });
    this.note('disconnected', reason === '' ? `closed with code ${code}` : reason);
    return null;
  }

  private rejected(reason: string): void {
    if (this.state.link !== 'rejected') {
      this.options.logger.error('an operator rejected this agent', { node_id: this.state.node_id, reason });
    }
    this.note('rejected', reason, 'once an operator approves it again, it connects within half a minute');
    void this.cancelApplies();
    this.terminals?.closeAll();
    this.forwards?.closeAll();
  }

  /** Cancels running applies, because a rejected machine must not be changed any further. */
  private async cancelApplies(): Promise<void> {
    try {
      for (const { run_id, state } of await this.engine.inventory()) {
        if (state === 'running') this.engine.cancel(run_id);
      }
    } catch (error) {
      this.options.logger.error('the applies under way cannot be cancelled', { reason: messageOf(error) });
    }
  }

  /** Returns what an upgrade has to wait for, or null. */
  private async busyWith(): Promise<string | null> {
    const running = (await this.engine.inventory()).some(({ state }) => state === 'running');
    if (running) return 'an apply';
    const sessions = this.terminals?.list().sessions.length ?? 0;
    const forwards = this.forwards?.open ?? 0;
    if (sessions === 0 && forwards > 0)
      return forwards === 1 ? 'a forward or copy of an operator' : `${forwards} forwards or copies of operators`;
    if (sessions === 0) return null;
    return sessions === 1 ? 'a terminal or command of an operator' : `${sessions} terminals or commands of operators`;
  }

  private note(link: LinkState, lastError: string | null, hint: string | null = null): void {
    const { dataDir, clock, logger } = this.options;
    this.state = { ...this.state, link, since: toTimestamp(clock.now()), last_error: lastError, hint };
    try {
      writeAgentState(dataDir, this.state);
    } catch (error) {
      logger.warn('the state file cannot be written', { reason: messageOf(error) });
    }
  }
}

/** Advice to a machine that is not the only one with its key. */
const COPIED =
  'another machine has the same key: if this machine is a copy, run "orch agent leave" here and enrol it anew; if the other ' +
  'one is, stop the agent there, and an operator decides with "orch agents keep NAME"';

/** Keeps the agent away from the orchestrator while it is about to be replaced. */
class Detachment {
  private controller = new AbortController();
  private end: (() => void) | null = null;
  private over: Promise<void> = Promise.resolve();

  /** Aborted while the agent is detached. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  set(detached: boolean): void {
    if (detached === this.controller.signal.aborted) return;
    if (detached) {
      this.over = new Promise((resolve) => {
        this.end = resolve;
      });
      this.controller.abort();
    } else {
      this.controller = new AbortController();
      this.end?.();
    }
  }

  /** Resolves once the agent may connect, or after `signal`. */
  async ended(signal: AbortSignal): Promise<void> {
    if (!this.controller.signal.aborted || signal.aborted) return;
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([this.over, stopped]);
  }
}
