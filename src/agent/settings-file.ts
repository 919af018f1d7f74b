/** The agent's YAML settings file, reloaded whenever it changes. */
import { statSync } from 'node:fs';
import { readRegularFile } from '../identity/private-file.js';
import { Fault, messageOf, systemCodeOf } from '../kernel/fault.js';
import type { Logger } from '../kernel/logger.js';
import { AGENT_DEFAULTS, AGENT_SETTINGS, type AgentSettings } from '../settings/agent.js';

interface SettingsFileOptions {
  readonly path: string;
  /** True when a missing file counts as empty; else it must exist at the start. */
  readonly isOptional: boolean;
  readonly logger: Logger;
}

/** Milliseconds between two checks of the file; polling detects every way in which editors replace files. */
const POLL = 2_000;

const MAX_BYTES = 256 * 1024;

/** The current settings and notifications of their changes. */
export class AgentSettingsFile {
  private readonly options: SettingsFileOptions;
  private readonly listeners = new Set<(settings: AgentSettings) => void>();
  private current: AgentSettings;
  private stamp: string;

  private constructor(options: SettingsFileOptions, settings: AgentSettings, stamp: string) {
    this.options = options;
    this.current = settings;
    this.stamp = stamp;
  }

  /** Reads the file. Throws `invalid_config` with file, lines and reasons. */
  static async open(options: SettingsFileOptions): Promise<AgentSettingsFile> {
    const stamp = stampOf(options.path);
    return new AgentSettingsFile(options, await readSettings(options), stamp);
  }

  get settings(): AgentSettings {
    return this.current;
  }

  /** Calls the listener with the settings after each change. */
  subscribe(listener: (settings: AgentSettings) => void): void {
    this.listeners.add(listener);
  }

  /** Watches the file until the signal aborts. An invalid or missing file changes nothing. */
  watch(signal: AbortSignal): void {
    const timer = setInterval(() => void this.reload(), POLL).unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  /** Reads the file if it has changed since the last read. */
  async reload(): Promise<void> {
    const { path, logger } = this.options;
    const stamp = stampOf(path);
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    try {
      const settings = await readSettings(this.options);
      if (JSON.stringify(settings) === JSON.stringify(this.current)) return;
      this.current = settings;
      logger.info('the configuration was read again', { file: path, settings });
      for (const listener of this.listeners) listener(settings);
    } catch (error) {
      logger.error('the configuration was not taken over, the old one stays', { file: path, reason: messageOf(error) });
    }
  }
}

/** Parses the file; loads the YAML library only if the file exists. */
async function readSettings({ path, isOptional }: SettingsFileOptions): Promise<AgentSettings> {
  const source = textOf(path, isOptional);
  if (source === null) return AGENT_DEFAULTS;
  if (source.length > MAX_BYTES) throw new Fault('invalid_config', `${path} is larger than ${MAX_BYTES} bytes`);
  const { parseSettings } = await import('../settings/yaml-settings.js');
  const hint = 'orch agent config-schema prints every key with its type';
  return { ...AGENT_DEFAULTS, ...parseSettings(AGENT_SETTINGS, { source, path, hint }) };
}

/** Returns a string that changes whenever the file is changed or replaced; for an unreachable file, the error code. */
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
