/** The process beside the agent that undoes an apply if the agent cannot: `node snapshot-guard-main.js DATA-DIR`. */
import { messageOf } from '../../kernel/fault.js';
import { systemctl } from '../../service/systemd.js';
import { thisHost } from '../host/this-host.js';
import { watchSnapshot } from './snapshot-guard.js';

const [dataDir = ''] = process.argv.slice(2);
process.umask(0o077);
watchSnapshot({ dataDir, systemctl, createHost: () => thisHost({ dataDir }) }).catch((error: unknown) => {
  process.stderr.write(`the snapshot could not be watched: ${messageOf(error)}\n`);
  process.exitCode = 1;
});
