/** The process of a trial: `node upgrade-trial.js DATA-DIR`. */
import { messageOf } from '../../kernel/fault.js';
import { systemctl } from '../../service/systemd.js';
import { runTrial } from './trial.js';

const [dataDir = ''] = process.argv.slice(2);
process.umask(0o077);
runTrial({ dataDir, systemctl }).catch((error: unknown) => {
  process.stderr.write(`the trial of the release failed: ${messageOf(error)}\n`);
  process.exitCode = 1;
});
