/** Commands that ask the running orchestrator of this host: `orch serve rotate-secrets-key` and `orch serve accept-clock`. */
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import type { RotatedSecretsKey, ServeClock, ServeFlags } from '../src/cli/programs.js';
import { loadSettings } from '../src/settings/load-serve.js';
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

/** Returns the settings that `orch serve` would use with these flags. Throws `invalid_config`. */
export function serveSettingsOf({ config, ...flags }: ServeFlags): Settings {
  const { env } = process;
  const configFile = typeof config === 'string' ? config : (env.ORCH_SERVE_CONFIG ?? null);
  return loadSettings({ flags, env, configFile, isRoot: process.geteuid?.() === 0 });
}
