/** The agent's YAML file: read at the start, and again whenever it changes. */
import { statSync } from 'node:fs';
import { readRegularFile } from '../identity/private-file.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import type { Logger } from '../kernel/logger.js';
import { AGENT_DEFAULTS, AGENT_SETTINGS, type AgentSettings } from '../settings/agent.js';

export interface SettingsFileOptions {
  readonly path: string;
  /** A file that is not there counts as empty; else it has to be there at the start. */
  readonly isOptional: boolean;
  readonly logger: Logger;
}

/** How often the file is looked at, in milliseconds: a poll sees whatever an editor or a tool does to it. */
const POLL = 2_000;

const MAX_BYTES = 256 * 1024;

/** The settings as they are now, for whoever looks. */
export class AgentSettingsFile {
  private readonly options: SettingsFileOptions;
  private readonly listeners = new Set<(settings: AgentSettings) => void>();
  private known: AgentSettings;
  private stamp: string;

  private constructor(options: SettingsFileOptions, settings: AgentSettings, stamp: string) {
    this.options = options;
    this.known = settings;
    this.stamp = stamp;
  }

  /** Throws `invalid_config` naming file, lines and reasons. */
  static async open(options: SettingsFileOptions): Promise<AgentSettingsFile> {
    const stamp = stampOf(options.path);
    return new AgentSettingsFile(options, await readSettings(options), stamp);
  }

  get settings(): AgentSettings {
    return this.known;
  }

  /** Called with the settings whenever they have changed. */
  subscribe(listener: (settings: AgentSettings) => void): void {
    this.listeners.add(listener);
  }

  /** Watches until the signal aborts. A file that is not valid, or is gone, changes nothing. */
  watch(signal: AbortSignal): void {
    const timer = setInterval(() => void this.reload(), POLL).unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  /** Reads the file if it is another one than when it was last read. */
  async reload(): Promise<void> {
    const { path, logger } = this.options;
    const stamp = stampOf(path);
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    try {
      const settings = await readSettings(this.options);
      if (JSON.stringify(settings) === JSON.stringify(this.known)) return;
      this.known = settings;
      logger.info('the configuration was read again', { file: path, settings });
      for (const listener of this.listeners) listener(settings);
    } catch (error) {
      logger.error('the configuration was not taken over, the old one stays', { file: path, reason: messageOf(error) });
    }
  }
}

/** The YAML library is loaded only where there is a file. */
async function readSettings({ path, isOptional }: SettingsFileOptions): Promise<AgentSettings> {
  const source = textOf(path, isOptional);
  if (source === null) return AGENT_DEFAULTS;
  if (source.length > MAX_BYTES) throw new Fault('invalid_config', `${path} is larger than ${MAX_BYTES} bytes`);
  const { parseSettings } = await import('../settings/yaml-settings.js');
  const hint = 'orch agent config-schema prints every key with its type';
  return { ...AGENT_DEFAULTS, ...parseSettings(AGENT_SETTINGS, { source, path, hint }) };
}

/** Tells a file from what it was before, also when another one was put in its place; of what cannot be reached, why. */
function stampOf(path: string): string {
  try {
    const stats = statSync(path, { bigint: true });
    return `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`;
  } catch (error) {
    return systemCodeOf(error) ?? 'unreachable';
  }
}

function textOf(path: string, isOptional: boolean): string | null {
  try {
    return readRegularFile(path, MAX_BYTES).toString('utf8');
  } catch (error) {
    if (isOptional && systemCodeOf(error) === 'ENOENT') return null;
    throw new Fault('invalid_config', `cannot read the configuration file ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
