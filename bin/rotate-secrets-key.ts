/** `orch serve rotate-secrets-key`: asks the orchestrator of this host. */
import { askOrchestrator } from '../daemon/ask-orchestrator.js';
import type { RotatedSecretsKey, ServeFlags } from '../src/cli/programs.js';
import { loadSettings } from '../src/settings/load-serve.js';

export async function rotateSecretsKey({ config, ...flags }: ServeFlags): Promise<RotatedSecretsKey> {
  const { env } = process;
  const configFile = typeof config === 'string' ? config : (env.ORCH_SERVE_CONFIG ?? null);
  const { data_dir: dataDir } = loadSettings({ flags, env, configFile, isRoot: process.geteuid?.() === 0 });
  const { key_id, kept, secrets, outputs, channels } = await askOrchestrator(dataDir, { verb: 'rotate-secrets-key' });
  const counts = { secrets: Number(secrets), outputs: Number(outputs), channels: Number(channels) };
  return { key_id: String(key_id), kept: typeof kept === 'string' ? kept : null, ...counts };
}
