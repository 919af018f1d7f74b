/** The runtime of `orch`, as `orch doctor` sees it: Node.js, the release, and the native modules. */
import { accessSync, constants, existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { loadSqlite } from '../../daemon/database/sqlite/load-sqlite.js';
import { loadNativePty } from '../../src/agent/pty/native-pty.js';
import { messageOf } from '../../src/kernel/fault.js';
import { VERSION } from '../../src/kernel/version.js';
import { type DoctorCheck, note, ok, problem, warning } from '../../src/programs/doctor-check.js';

/** The purpose of native modules on this machine. */
export interface Needs {
  /** True if an orchestrator is here. */
  store: boolean;
  /** True if an agent here opens terminals. */
  terminals: boolean;
}

/** Directory of managed releases; `current` links to the one that runs. */
const CURRENT = '/opt/orch/current';

export async function examineRuntime(needs: Needs): Promise<readonly DoctorCheck[]> {
  return [nodeCheck(), releaseCheck(), await storeModule(needs.store), terminalModule(needs.terminals)];
}

/** Major versions of Node.js on which the whole suite is run. An older one does not get here. */
const TESTED = [20, 22, 24, 26];

function nodeCheck(): DoctorCheck {
  const { node } = process.versions;
  const major = Number.parseInt(node, 10);
  const found = `Node.js ${node} (${process.execPath})`;
  if (TESTED.includes(major)) return ok('node', found);
  const fix = `orch is tested on Node.js ${TESTED.join(', ')}: install one of them, or a package of orch, which has its own`;
  return warning('node', `${found} is not a version that orch is tested on`, fix);
}

function releaseCheck(): DoctorCheck {
  const program = realpathSync(process.argv[1] ?? '.');
  const link = lstatSync(CURRENT, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() && !existsSync(CURRENT)) {
    const found = `${CURRENT} links to ${readlinkSync(CURRENT)}, which does not exist`;
    return problem('orch', found, `let it link to a release: ls /opt/orch/releases; without one: sudo rm ${CURRENT}`);
  }
  const found = `orch ${VERSION} (${program})`;
  if (link === undefined || program.startsWith(`${realpathSync(CURRENT)}/`)) return ok('orch', found);
  const services = `the services of this machine run ${realpathSync(CURRENT)}`;
  return note('orch', `${found}; ${services}`, 'call the command of the services: /opt/orch/current/bin/orch');
}

async function storeModule(isNeeded: boolean): Promise<DoctorCheck> {
  try {
    await loadSqlite();
    return ok('store module', 'better-sqlite3 loads');
  } catch (error) {
    return moduleCheck({ name: 'store module', what: 'orch serve', error, isNeeded });
  }
}

function terminalModule(isNeeded: boolean): DoctorCheck {
  try {
    loadNativePty();
    return ok('terminal module', 'node-pty loads');
  } catch (error) {
    return moduleCheck({ name: 'terminal module', what: 'terminals on this machine', error, isNeeded });
  }
}

interface BrokenModule {
  readonly name: string;
  /** The part that needs the module. */
  readonly what: string;
  readonly error: unknown;
  readonly isNeeded: boolean;
}

function moduleCheck({ name, what, error, isNeeded }: BrokenModule): DoctorCheck {
  const message = messageOf(error);
  const isOfOther = /NODE_MODULE_VERSION|compiled against a different Node/.test(message);
  const why = isOfOther
    ? `it was compiled for another Node.js than ${process.version}`
    : (message.split('\n')[0] ?? '');
  const found = `${what} will not work: ${why}`;
  const fix = mendOf(isOfOther);
  return isNeeded ? problem(name, found, fix) : note(name, `${found}; nothing here needs it now`, fix);
}

/** Tools that compile native modules, with the packages of Debian and of distributions like Fedora that contain them. */
const TOOLS = [
  { commands: ['g++', 'c++', 'clang++'], debian: 'g++', fedora: 'gcc-c++' },
  { commands: ['make', 'gmake'], debian: 'make', fedora: 'make' },
  { commands: ['python3', 'python'], debian: 'python3', fedora: 'python3' },
] as const;

function mendOf(isOfOther: boolean): string {
  const install = isOfOther
    ? 'install orch again with this Node.js, or call it with the one that installed it'
    : 'install a package of orch, which contains it, or install orch again: npm install --global --include=optional';
  const missing = TOOLS.filter(({ commands }) => !commands.some(isInPath));
  if (missing.length === 0) return install;
  const command = existsSync('/etc/debian_version')
    ? `apt install ${missing.map(({ debian }) => debian).join(' ')}`
    : `dnf install ${missing.map(({ fedora }) => fedora).join(' ')}`;
  return `${install}\nto compile it, this machine lacks packages: sudo ${command}`;
}

function isInPath(command: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
