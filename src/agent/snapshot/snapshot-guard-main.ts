/** The process beside the agent that undoes an apply if the agent cannot: `node snapshot-guard-main.js DATA-DIR`. */
import { messageOf } from '../../kernel/fault.js';
import { systemctlAt } from '../../service/systemd.js';
import { HeldPrograms } from '../host/held-programs.js';
import { thisHost } from '../host/this-host.js';
import { watchSnapshot } from './snapshot-guard.js';

const [dataDir = ''] = process.argv.slice(2);
process.umask(0o077);
const warn = (message: string) => void process.stderr.write(`${message}\n`);
const held = new HeldPrograms();
const systemctl = systemctlAt(() => held.find('systemctl'));
watchSnapshot({ dataDir, systemctl, createHost: () => thisHost({ dataDir, held }), held, warn }).catch(
  (error: unknown) => {
    warn(`the snapshot could not be watched: ${messageOf(error)}`);
    process.exitCode = 1;
  },
);
