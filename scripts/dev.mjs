/** `npm run dev`: an orchestrator and one agent of this machine in a temporary directory, until Ctrl-C. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const orch = fileURLToPath(new URL('../dist/orch/orch.js', import.meta.url));
const { status } = spawnSync(process.execPath, ['--enable-source-maps', orch, 'quickstart', '--keep'], {
  stdio: 'inherit',
});
process.exit(status ?? 1);
