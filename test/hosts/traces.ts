/** Finds what a run of hosts has on this machine: nothing, once it was cleared away. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mustRun, run } from './command.js';

/** One line for each mount, link, route, control group, process and file of the run. */
export async function tracesOfRun(number: number): Promise<readonly string[]> {
  return traces(new RegExp(`orch-t${number}(?!\\d)|/run/orch-test-hosts/${number}(?!\\d)|10\\.77\\.${number}\\.`));
}

/** The same for one host, whichever run it belonged to. */
export async function tracesOfHost(name: string): Promise<readonly string[]> {
  return traces(new RegExp(`(orch-t|/run/orch-test-hosts/)\\d+[-/]${name}`));
}

async function traces(mine: RegExp): Promise<readonly string[]> {
  const listings: Readonly<Record<string, string>> = {
    mount: readFileSync('/proc/self/mountinfo', 'utf8'),
    link: await mustRun(['ip', '-oneline', 'link']),
    route: await mustRun(['ip', '-4', 'route']),
    group: await found('/sys/fs/cgroup', '-type', 'd'),
    process: processes().join('\n'),
    file: await found('/run', '-xdev'),
  };
  return Object.entries(listings).flatMap(([kind, text]) => matching(text, mine).map((line) => `${kind}: ${line}`));
}

/** What is there of any run. Other runs end meanwhile, and `find` fails when a directory vanishes while it looks. */
async function found(directory: string, ...tests: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await run(['find', directory, ...tests, '-path', '*orch-t*']);
  const others = stderr.split('\n').filter((line) => line !== '' && !line.endsWith(': No such file or directory'));
  if (status === 0 || others.length === 0) return stdout;
  throw new Error(`${directory} could not be looked through:\n${others.join('\n')}`);
}

function matching(text: string, pattern: RegExp): readonly string[] {
  return text.split('\n').filter((line) => pattern.test(line));
}

function processes(): readonly string[] {
  const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry));
  return pids.map((pid) =>
    `${pid} ${read(`/proc/${pid}/cmdline`)} ${read(`/proc/${pid}/cgroup`)}`.replaceAll(/[\0\n]/g, ' '),
  );
}

function read(path: string): string {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
}
