/** Commands that ask the running orchestrator of this host: `orch serve rotate-secrets-key` and `orch serve accept-clock`. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import type { RotatedSecretsKey, ServeClock, ServeFlags } from '../src/programs/serve.js';
import { installedServe } from '../src/service/installed-serve.js';
import { loadSettings, standardDataDir } from '../src/settings/load-serve.js';
import type { Settings } from '../src/settings/serve.js';

export async function rotateSecretsKey(flags: ServeFlags): Promise<RotatedSecretsKey> {
  const answer = await askOrchestrator(dataDirOf(flags), { verb: 'rotate-secrets-key' });
  const { key_id, kept, secrets, outputs, channels } = answer;
  const counts = { secrets: Number(secrets), outputs: Number(outputs), channels: Number(channels) };
  return { key_id: String(key_id), kept: typeof kept === 'string' ? kept : null, ...counts };
}

export async function serveClock(flags: ServeFlags, accept: boolean): Promise<ServeClock> {
  const { now, doubt_ms, waits, ahead_ms } = await askOrchestrator(dataDirOf(flags), { verb: 'clock', accept });
  return { now: String(now), doubt_ms: Number(doubt_ms), waits: waits === true, ahead_ms: Number(ahead_ms) };
}

/** Returns the data directory that `orch serve` would use with these flags. Throws `invalid_config`. */
export const dataDirOf = (flags: ServeFlags): string => serveSettingsOf(flags).data_dir;

/**
 * Returns the settings of the orchestrator on this host: those that `orch serve` would use with these flags. Without a
 * data directory in flags, variables or the configuration file, they are those of the installed service, unless this
 * user has an orchestrator of its own. Throws `invalid_config`.
 */
export function serveSettingsOf({ config, ...flags }: ServeFlags): Settings {
  const { env } = process;
  const isRoot = process.geteuid?.() === 0;
  const isNamed = flags.data_dir !== undefined || env.ORCH_SERVE_DATA_DIR !== undefined;
  const hasOwn = !isRoot && existsSync(join(standardDataDir(env, false), 'identity.key'));
  const { data_dir, config: itsConfig, ...its } = (isNamed || hasOwn ? null : installedServe()?.flags) ?? {};
  const configFile = typeof config === 'string' ? config : (env.ORCH_SERVE_CONFIG ?? itsConfig ?? null);
  const dataDir = data_dir === undefined ? {} : { dataDir: data_dir };
  return loadSettings({ flags: { ...its, ...flags }, env, configFile, isRoot, ...dataDir });
}
