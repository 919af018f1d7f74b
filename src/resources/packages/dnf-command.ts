/** Runs dnf with a bounded wait for its lock, and explains its failures. */

import type { CommandRefusal } from '../command.js';
import { type Command, type CommandResult, commandFailure, exitedWith, lastLines } from '../command.js';
import type { Host, RunStep } from '../host.js';
import type { StepVerdict } from '../kind.js';
import { unsuitableFile, versionOfFile } from './package-file.js';
import { askRpm, isRpmVersion, rpmName, rpmVersions } from './rpm-installed.js';

const PATIENCE_SECS = 120;

/**
 * Has no word for the path of a copy (`withFile`). Retries for the seconds of the first argument while the command ends with 200, dnf's status for a held lock; dnf itself waits
 * without limit or not at all. A failing package script, only a warning to dnf, becomes an error.
 */
const WHEN_FREE = `left=$1
shift
while :; do
  said=$("$@" 2>&1 >&3)
  status=$?
  [ "$status" -eq 200 ] && [ "$left" -gt 0 ] || break
  sleep 2
  left=$((left - 2))
done 3>&1
cat >&2 <<END
$said
END
case $said in
  *' scriptlet in rpm package '*) [ "$status" -ne 0 ] || status=1 ;;
esac
exit "$status"`;

const LOCKED_STATUS = 200;

/** Returns the refusal for a failure of dnf by its status and last lines. */
export function dnfFailure(result: CommandResult): CommandRefusal {
  if (!exitedWith(result, LOCKED_STATUS)) return commandFailure({ argv: ['dnf'] }, result);
  const [, pid] = /already locked by (\d+)/.exec(result.stderr) ?? [];
  const [, program] = /The application with PID \d+ is: (.+)/.exec(result.stderr) ?? [];
  const holder =
    pid === undefined ? 'another process' : `process ${pid}${program === undefined ? '' : ` (${program})`}`;
  return {
    code: 'package_manager_locked',
    message: `${holder} holds dnf's lock, and orch gave up waiting for it; try again when it is released`,
  };
}

/** Returns a non-interactive dnf command. */
export const dnf = (...args: readonly string[]): Command => ({
  argv: ['sh', '-c', WHEN_FREE, 'dnf', String(PATIENCE_SECS), 'dnf', '-y', '--setopt=exit_on_lock=True', ...args],
  timeoutSecs: 600,
});

/** Returns a command that reads installed packages, for which no repository is needed. */
export const dnfInstalled = (...args: readonly string[]): Command => dnf('-q', '-C', '--disablerepo=*', ...args);

/** Returns a command that changes packages and survives the end of the agent. */
export const dnfChange = (verb: 'install' | 'remove'): Command => ({
  ...dnf('--setopt=clean_requirements_on_remove=False', verb),
  timeoutSecs: 3600,
  lifetime: 'outlive',
});

const isRemovalByDnf = ({ argv }: Command): boolean => argv.includes('remove');

/** Judges one package after a failed run of dnf. */
export async function judgeDnf(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict> {
  const script = scriptFailure(name, result);
  if (script !== null) return script;
  const answer = await askRpm(host, [name]);
  if ('code' in answer) return 'undone';
  const versions = rpmVersions(name, answer.rows, answer.native);
  if (isRemovalByDnf(step.command)) return versions.length === 0 ? 'done' : 'undone';
  const inFile = versionOfFile(step);
  if (inFile !== null) {
    return versions.some((version) => inFile === '' || isRpmVersion(inFile, version)) ? 'done' : 'undone';
  }
  const item = rpmName((step.items ?? [])[0] ?? '');
  return versions.some((version) => item === `${rpmName(name)}-${version}`) ? 'done' : 'undone';
}

type Say = (name: string, found: RegExpExecArray) => CommandRefusal;

/** Messages of dnf in standard error, with their meaning. */
const SIGNS: readonly (readonly [RegExp, Say])[] = [
  [
    /superuser privileges|are you root\?|Permission denied/i,
    (name) => ({
      code: 'permission_denied',
      message: `this user may not change the package ${name}; run the agent as root`,
    }),
  ],
  [
    /No match for argument: (\S+)/,
    (_name, [, which]) => ({
      code: 'package_unknown',
      message: `${which} is not in the index of this machine`,
    }),
  ],
  [
    /protected packages?: (.*)/,
    (name, [, which]) => ({
      code: 'removal_refused',
      message: `${name} is not removed, because dnf protects ${which}`,
    }),
  ],
  [
    /(?:rpmdb|database).*(?:corrupt|cannot open|failed)|cannot open Packages/i,
    (_name, [line]) => ({
      code: 'package_manager_broken',
      message: `rpm cannot read its database; try: rpm --rebuilddb\n${line}`,
    }),
  ],
  [
    /^ Problem(?: \d+)?:[\s\S]*/m,
    (name, [problem]) => ({
      code: 'command_failed',
      message: `dnf cannot install ${name}: ${problem.trim().replace(/\n\(try to add [\s\S]*$/, '')}`,
    }),
  ],
];

export function explainDnf(name: string, result: CommandResult): CommandRefusal {
  const script = scriptFailure(name, result);
  if (script !== null) return script;
  const unsuitable = unsuitableFile(name, result);
  if (unsuitable !== null) return unsuitable;
  for (const [sign, say] of result.end.how === 'exited' ? SIGNS : []) {
    const found = sign.exec(result.stderr);
    if (found) return say(name, found);
  }
  return dnfFailure(result);
}

const LINES = 8;

/** Returns the refusal for a failed script of the package, with its output. */
function scriptFailure(name: string, { stdout, stderr }: CommandResult): CommandRefusal | null {
  const failed = [...stderr.matchAll(/^Error in (\S+) scriptlet in rpm package (\S+)$/gm)];
  const own = failed.find(([, , which]) => which === rpmName(name));
  if (!own) return null;
  const [, script = ''] = own;
  const isInstalled = !/^PRE(?:IN|TRANS)$/.test(script);
  const all = isInstalled
    ? ', and rpm counts the package as installed all the same; see to the cause and reinstall it'
    : '';
  const said = lastLines({ stdout: saidBy(rpmName(name), stdout), stderr: '' }, LINES);
  return {
    code: 'command_failed',
    message: [`the ${script} script of ${name} failed${all}`, said].filter(Boolean).join('\n'),
  };
}

/** Returns the output of the package's script. */
function saidBy(name: string, stdout: string): string {
  const lines = stdout.split('\n');
  const isProgress = (line: string) => /^ {2}\S.* : \S+ +\d+\/\d+\s*$/.test(line);
  const start = lines.findLastIndex((line) => /Running scriptlet: /.test(line) && line.includes(`: ${name}-`));
  const rest = start < 0 ? [] : lines.slice(start + 1);
  const end = rest.findIndex(isProgress);
  return rest.slice(0, end < 0 ? undefined : end).join('\n');
}
