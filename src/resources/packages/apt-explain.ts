/** Explains failures of apt, and finds out what a failed run has done anyway. */

import type { CommandRefusal } from '../command.js';
import { type CommandResult, commandFailure, lastLines } from '../command.js';
import type { Host, RunStep } from '../host.js';
import type { StepVerdict } from '../kind.js';
import { askDpkg, plainName } from './apt-installed.js';
import { unsuitableFile, versionOfFile } from './package-file.js';

/** Judges one package after a failed run: a package with a failing script fails every later run of apt, which still does its work. */
export async function judgeApt(host: Host, name: string, step: RunStep, result: CommandResult): Promise<StepVerdict> {
  const answer = await askDpkg(host, [name]);
  if ('code' in answer) return 'undone';
  const { installed, isConfigured } = answer.stateOf(name);
  const verb = step.command.argv[1];
  const isRemoval = verb === 'remove' || verb === 'purge';
  const isDone = isRemoval
    ? installed === null && (verb === 'remove' || isConfigured !== true)
    : installed?.fault === null && isOf(step, name, installed.version);
  if (isDone) return 'done';
  return failuresOf(result).some(({ which }) => plainName(which) === plainName(name))
    ? explainApt(name, step, result)
    : 'undone';
}

/** True for a step that installs this version. */
function isOf(step: RunStep, name: string, version: string): boolean {
  const inFile = versionOfFile(step);
  return inFile === null ? (step.items ?? []).includes(`${name}=${version}`) : inFile === '' || inFile === version;
}

type Say = (name: string, found: RegExpExecArray, result: CommandResult) => CommandRefusal;

/** Messages of apt and dpkg in standard error, with their meaning. */
const SIGNS: readonly (readonly [RegExp, Say])[] = [
  // Must precede the locks: without permission for the lock file, apt also says that it cannot get the lock.
  [/\(13: Permission denied\)|are you root\?/, (name) => notAllowed(name)],
  [
    /Could not get lock|Unable to (?:acquire|lock)|lock (?:was|is) locked by another process/,
    (_name, _, result) => locked(result),
  ],
  [/dpkg was interrupted/, () => broken('an earlier run of dpkg was cut off', 'dpkg --configure -a')],
  [/--fix-broken install/, () => broken('packages lack what they depend on', 'apt-get --fix-broken install')],
  [/Held packages were changed/, (name) => held(name)],
  [
    /Unable to locate package (\S+)/,
    (_name, [, which]) => ({
      code: 'package_unknown',
      message: `${which} is not in the index of this machine`,
    }),
  ],
  [
    /Version '([^']+)' for '([^']+)' was not found/,
    (_name, [, version, which]) => ({
      code: 'package_version_unknown',
      message: `the index of this machine does not offer ${which} in version ${version}`,
    }),
  ],
  [/remove is disabled/, (name, _, { stdout }) => costly(name, stdout)],
];

export function explainApt(name: string, step: RunStep, result: CommandResult): CommandRefusal {
  const failure = commandFailure(step.command, result);
  if (result.end.how !== 'exited') return failure;
  const unsuitable = unsuitableFile(name, result);
  if (unsuitable !== null) return unsuitable;
  const stderr = result.stderr.replace(UNSANDBOXED, '');
  for (const [sign, say] of SIGNS) {
    const found = sign.exec(stderr);
    if (found) return say(name, found, result);
  }
  const needs = /^The following packages have unmet dependencies:\n(?: .*\n?)+/m.exec(result.stdout)?.[0];
  if (needs !== undefined) return { code: 'command_failed', message: `apt cannot install ${name}: ${tidy(needs)}` };
  return scriptFailure(name, result) ?? failure;
}

/** The warning about a file that only root may read, which says that permission was denied. */
const UNSANDBOXED = /^W: Download is performed unsandboxed.*$/gm;

const notAllowed = (name: string): CommandRefusal => ({
  code: 'permission_denied',
  message: `this user may not change the package ${name}; run the agent as root`,
});

/** Returns the refusal for a held lock; while it waits, apt names the holder in standard output. */
function locked({ stdout, stderr }: CommandResult): CommandRefusal {
  const [, file = "dpkg's lock", pid, program] =
    /Could not get lock (\S+)\. It is held by process (\d+) \(([^)\n]+)\)/.exec(`${stderr}\n${stdout}`) ?? [];
  const holder = pid === undefined ? 'another process' : `process ${pid} (${program})`;
  return {
    code: 'package_manager_locked',
    message: `${holder} holds ${file}, and apt gave up waiting for it; apply again when it is released`,
  };
}

const broken = (why: string, remedy: string): CommandRefusal => ({
  code: 'package_manager_broken',
  message: `on this machine, ${why}; see to it with: ${remedy}`,
});

const held = (name: string): CommandRefusal => ({
  code: 'package_held',
  message: `${name} needs a change to a package that is held on this machine; "apt-mark showhold" names those`,
});

function costly(name: string, stdout: string): CommandRefusal {
  const removed = listUnder(/^The following packages will be REMOVED:$/m, stdout).join(', ');
  return {
    code: 'removal_refused',
    message: `${name} is not installed, because ${removed} would have to be removed for it; remove that first`,
  };
}

/** Returns the words of the indented lines below a header. */
function listUnder(header: RegExp, text: string): readonly string[] {
  const at = header.exec(text);
  if (!at) return [];
  const list = /^(?:\n {2}.*)*/.exec(text.slice(at.index + at[0].length))?.[0] ?? '';
  return list.split(/\s+/).filter(Boolean);
}

const LINES = 8;

interface DpkgFailure {
  readonly which: string;
  readonly how: string;
  /** Offset in standard error. */
  readonly at: number;
}

const failuresOf = ({ stderr }: CommandResult): readonly DpkgFailure[] =>
  [...stderr.matchAll(/^dpkg: error processing (?:package|archive) (\S+) \(--\S+\):\n (.*)$/gm)].map(
    ({ 1: which = '', 2: how = '', index: at }) => ({ which, how, at }),
  );

/** Returns the refusal for a package whose script failed, with its output. */
function scriptFailure(name: string, result: CommandResult): CommandRefusal | null {
  const failures = failuresOf(result);
  const failure = failures.find(({ which }) => plainName(which) === plainName(name)) ?? failures[0];
  if (!failure) return null;
  const { which, how, at } = failure;
  const said = lastLines({ stdout: saidBy(which, result.stdout), stderr: '' }, LINES);
  const complained = lastLines({ stdout: errorsBefore(result.stderr, at), stderr: '' }, LINES);
  const about = plainName(which) === plainName(name) ? name : `${which}, which the run for ${name} came to,`;
  const message = [`${about} failed: ${how}`, said, complained].filter(Boolean).join('\n');
  return { code: 'command_failed', message };
}

/** Returns the standard output of one package. */
function saidBy(name: string, stdout: string): string {
  const lines = stdout.split('\n');
  const isOf = (line: string) => plainName(BEGINS.exec(line)?.[1] ?? '') === plainName(name);
  const start = lines.findLastIndex(isOf);
  if (start < 0) return '';
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => BEGINS.test(line) || /^(?:Processing triggers|Errors were)/.test(line));
  return rest.slice(0, end < 0 ? undefined : end).join('\n');
}

const BEGINS = /^(?:Setting up|Removing|Unpacking|Preparing to unpack|Selecting previously unselected package) (\S+)/;

/** Returns the standard error since the previous error. */
function errorsBefore(stderr: string, at: number): string {
  const before = stderr.slice(0, at);
  const last = before.lastIndexOf('dpkg: error processing');
  const since = last < 0 ? before : before.slice(before.indexOf('\n', before.indexOf('\n', last) + 1) + 1);
  return since
    .split('\n')
    .filter((line) => !line.startsWith('debconf: delaying') && !line.startsWith('W: '))
    .join('\n');
}

const tidy = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join('\n');
