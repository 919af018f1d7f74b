/**
 * Runs `orch serve`: loads the settings, locks the data directory, and runs the orchestrator until the signal aborts.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DataDirectory, holdDataDirectory } from '../src/identity/data-directory.js';
import { Fault, isFault, messageOf } from '../src/kernel/fault.js';
import type { Logger } from '../src/kernel/logger.js';
import { loadSettings, type RawFlags, standardDataDir } from '../src/settings/load-serve.js';
import { SERVE_SETTINGS, type SettingKey, type Settings } from '../src/settings/serve.js';
import { jsonSchemaOf } from '../src/settings/setting.js';
import { DirectoryMemory } from './backup/directory-memory.js';
import { isStoppedCommand } from './backup/stopped-store.js';
import type { Core } from './core/core.js';
import { fatalFault } from './database/sqlite/sqlite-error.js';
import type { BootstrapOperator } from './first-operator.js';
import { warnOfUnknownName } from './fleet/own-address.js';
import { createOrchestrator, type Orchestrator } from './orchestrator.js';

/** A logger whose level follows the settings. */
interface ServeLogger extends Logger {
  setLevel(level: Settings['log.level']): void;
}

interface ServeOptions extends Pick<Core, 'clock' | 'newId' | 'randomBytes'> {
  /**
   * Command-line flags by flat name: the settings, and `config`, `ready_file`, `new_epoch`, `new_store`,
   * `new_identity` and `config_schema`.
   */
  readonly flags: RawFlags;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly isRoot: boolean;
  readonly createLogger: (options: { level: Settings['log.level']; format: Settings['log.format'] }) => ServeLogger;
  /** Returns the invoking user's own operator key. */
  readonly ownOperator: () => BootstrapOperator | null;
  readonly print: (text: string) => void;
  /** Registers a function to call when the configuration must be reloaded. */
  readonly onReload: (reload: () => void) => void;
  /** Ends the process at once, because after this failure of the store only a restart can restore a known state. */
  readonly onFatal: () => never;
  /**
   * Ends the process at once with exit status 1, because the stop timed out. Every acknowledged write is in the
   * store.
   */
  readonly onLateStop: () => never;
  /** Stops the orchestrator when it aborts. */
  readonly signal: AbortSignal;
}

/** Timeout of a stop in milliseconds, after which the process ends anyway. */
const STOP_WITHIN = 10_000;
/** Timeout in milliseconds for a command, such as `orch serve backup`, to release the data directory. */
const HELD_WITHIN = 60_000;
const HELD_POLL = 200;

/** Runs until the signal aborts and returns the exit status. Throws a fault when the orchestrator cannot start. */
export async function serve(options: ServeOptions): Promise<number> {
  const {
    config_schema: wantsSchema,
    ready_file: readyFile,
    new_epoch: wantsEpoch,
    new_store: wantsStore,
    new_identity: wantsIdentity,
    config,
    ...flags
  } = options.flags;
  if (wantsSchema === true) {
    options.print(`${JSON.stringify(jsonSchemaOf(SERVE_SETTINGS, SCHEMA), null, 2)}\n`);
    return 0;
  }
  const load = () =>
    loadSettings({ ...options, flags, configFile: textOf(config) ?? options.env.ORCH_SERVE_CONFIG ?? null });
  const live = { settings: load() };
  const logger = options.createLogger({ level: live.settings['log.level'], format: live.settings['log.format'] });
  if (flags.metrics_token !== undefined) {
    logger.warn(
      'the token of --metrics-token stands in the list of processes, which every user of this host can read',
      {
        hint: 'put it into a file of mode 0600, and name that with --metrics-token-file',
      },
    );
  }
  const dataDir = resolve(live.settings.data_dir);
  const memory = memoryOf(options);
  if (wantsIdentity !== true) memory.requireMounted(dataDir);
  const directory = await hold(dataDir, logger, options.signal);
  if (directory === null) return 0;
  try {
    const orchestrator = await createOrchestrator({
      ...options,
      settings: () => live.settings,
      newEpoch: wantsEpoch === true,
      newStore: wantsStore === true,
      newIdentity: wantsIdentity === true,
      logger,
      onFatal: (error) => {
        const { message, hint } =
          live.settings.store === '' ? fatalFault(join(dataDir, 'orch.db'), error) : serverFault(error);
        logger.error('the store failed, the orchestrator ends at once', { reason: message, hint });
        options.onFatal();
      },
    });
    options.onReload(() => {
      reload(live, load, logger);
      orchestrator.reload();
    });
    await orchestrator.start();
    memory.note(dataDir, orchestrator.ready().public_key, logger);
    void warnOfUnknownName(live.settings.advertised_host, logger);
    const file = textOf(readyFile) ?? options.env.ORCH_SERVE_READY_FILE;
    try {
      if (file !== undefined) writeReadyFile(file, orchestrator);
    } catch (error) {
      // A process that waits for the file would hang, and the lock of the directory is about to be released.
      await stop(orchestrator, logger, options.onLateStop);
      throw error;
    }
    await aborted(options.signal);
    await stop(orchestrator, logger, options.onLateStop);
    return 0;
  } finally {
    directory.release();
  }
}

/** Explains why the store on a server is not the one that this process knows. */
const serverFault = (error: unknown): Fault =>
  new Fault('store_unavailable', messageOf(error), {
    hint: 'the next start examines the store: start orch serve again, and see docs/scale-out.md',
    cause: error,
  });

/** Keeps the record beside the standard data directory, whichever directory this orchestrator uses. */
const memoryOf = ({ env, isRoot }: ServeOptions): DirectoryMemory =>
  new DirectoryMemory(join(dirname(standardDataDir(env, isRoot)), 'orch-serve.json'));

/** ID and title of the configuration file's JSON Schema. */
const SCHEMA = { id: 'urn:orch:schema:serve-config:v1', title: 'Configuration of orch serve' };

/** Returns the value of a flag that holds a path, or undefined when it was not given. */
const textOf = (flag: string | boolean | undefined): string | undefined =>
  typeof flag === 'string' ? flag : undefined;

interface LiveSettings {
  settings: Settings;
}

function reload(live: LiveSettings, load: () => Settings, logger: ServeLogger): void {
  try {
    const next = load();
    const keys = Object.keys(SERVE_SETTINGS) as SettingKey[];
    const changed = keys.filter((key) => JSON.stringify(next[key]) !== JSON.stringify(live.settings[key]));
    const waiting = changed.filter((key) => !SERVE_SETTINGS[key].live);
    const kept = Object.fromEntries(waiting.map((key) => [key, live.settings[key]]));
    live.settings = { ...next, ...kept };
    logger.setLevel(live.settings['log.level']);
    logger.info('the configuration was read again', { changed: changed.filter((key) => SERVE_SETTINGS[key].live) });
    if (waiting.length > 0) logger.warn('these settings take effect at the next start', { settings: waiting });
  } catch (error) {
    if (!isFault(error)) throw error;
    logger.error('the configuration was not taken over, the old one stays', { reason: error.message });
  }
}

/** Writes the ready file atomically, so that its readers never see part of it. Throws `invalid_config`. */
function writeReadyFile(file: string, orchestrator: Orchestrator): void {
  const temporary = `${file}.${process.pid}.new`;
  try {
    writeFileSync(temporary, `${JSON.stringify(orchestrator.ready())}\n`, { mode: 0o600 });
    renameSync(temporary, file);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new Fault('invalid_config', `cannot write the ready file ${file}: ${messageOf(cause)}`, {
      hint: 'name a file in a directory that this user may write to with --ready-file',
      cause,
    });
  }
}

/**
 * Locks the data directory, waiting while a command on the stopped store holds it. Returns null when the signal
 * aborts meanwhile. Throws as `holdDataDirectory` does when another orchestrator holds the lock or the wait times
 * out.
 */
async function hold(dataDir: string, logger: Logger, signal: AbortSignal): Promise<DataDirectory | null> {
  const start = performance.now();
  let waitsFor: unknown = null;
  while (!signal.aborted) {
    try {
      return holdDataDirectory(dataDir, 'orch serve');
    } catch (error) {
      if (!isFault(error, 'data_dir_locked') || !isStoppedCommand(error.data?.program)) throw error;
      if (performance.now() - start > HELD_WITHIN) throw error;
      const { pid, program } = error.data;
      if (pid !== waitsFor) logger.warn('waiting for a command to give the data directory free', { pid, program });
      waitsFor = pid;
    }
    await sleep(HELD_POLL, undefined, { signal }).catch(() => undefined);
  }
  return null;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Stops the orchestrator with a timeout. After a timeout the lock stays behind, and the next start clears it. */
async function stop(orchestrator: Orchestrator, logger: Logger, onLateStop: () => never): Promise<void> {
  const timer = setTimeout(() => {
    logger.error('the orchestrator did not stop in time and is cut off', { milliseconds: STOP_WITHIN });
    onLateStop();
  }, STOP_WITHIN);
  try {
    await orchestrator.stop();
  } finally {
    clearTimeout(timer);
  }
}
