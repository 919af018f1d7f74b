/** Carries out file steps on Windows; every file is whole at every moment. */
import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, unlinkSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { assertNever, Fault, systemCodeOf } from '../../kernel/fault.js';
import type { Command, CommandResult } from '../../resources/command.js';
import type { FileStep, SourceFile, StepOutcome } from '../../resources/host.js';
import { powershell, readAnswer } from '../../resources/windows/powershell.js';
import { parentOfWindowsPath, problemOfWindowsPath } from '../../resources/windows/windows-path.js';
import { removeDirectory, removeFile } from './in-place.js';
import { reached, refusalOfStep } from './path-refusal.js';
import type { BroughtFiles } from './source-files.js';
import type { Temporaries } from './temporaries.js';
import { type ToNative, WindowsWalk } from './windows-walk.js';

/** Replaces a file by a finished one and keeps its access list. Throws on failure. */
export type Replace = (temporary: string, target: string) => Promise<void>;

interface WindowsMachine {
  readonly toNative: ToNative;
  readonly replace: Replace;
  readonly temporaries: Temporaries;
  /** Files beside modules, which steps take as content. */
  readonly files: BroughtFiles;
}

/** Returns the outcomes in the order of the steps; a failed step does not stop the others. */
export async function commitWindows(
  steps: readonly FileStep[],
  machine: WindowsMachine,
): Promise<readonly StepOutcome[]> {
  const walk = new WindowsWalk(machine.toNative);
  const missing = await machine.files.bringFor(steps);
  const outcomes: StepOutcome[] = [];
  for (const step of steps) {
    const refusal = missing.get(step);
    if (refusal != null) {
      outcomes.push(refusal);
      continue;
    }
    try {
      await perform(step, walk, machine);
      outcomes.push(null);
    } catch (error) {
      outcomes.push(refusalOfStep(error, step));
    }
  }
  return outcomes;
}

async function perform(step: FileStep, walk: WindowsWalk, machine: WindowsMachine): Promise<void> {
  if ('parents' in step && step.parents) makeParents(parentOfWindowsPath(step.path), walk, machine.toNative);
  const directory = directoryOf(step.path, walk, machine);
  const at = machine.toNative(step.path);
  switch (step.do) {
    case 'write-file':
      return writeFile(step, { directory, at }, machine);
    case 'make-directory':
      return void mkdirSync(at);
    case 'make-link':
      throw new Fault('unsupported_on_platform', `${step.path}: links are made on Linux and macOS only`);
    case 'set-metadata':
      throw new Fault('unsupported_on_platform', `Windows has no owner, group or mode to set for ${step.path}`);
    case 'remove-file':
      return removeFile(step, at);
    case 'remove-directory':
      return removeDirectory(at);
    case 'remove-tree':
      throw new Fault('unsupported_on_platform', `${step.path} is removed only when it is empty`);
    case 'unpack':
    case 'remove-unpacked':
      throw new Fault('unsupported_on_platform', `${step.path}: archives are unpacked on Linux and macOS only`);
    default:
      assertNever(step);
  }
}

/** Returns the parent directory of a step, after the removal of leftovers. Throws `unsafe_path` and `parent_missing`. */
function directoryOf(path: string, walk: WindowsWalk, { temporaries }: WindowsMachine): string {
  const problem = problemOfWindowsPath(path);
  if (problem !== null) throw new Fault('unsafe_path', `${path} ${problem}`);
  const parent = parentOfWindowsPath(path);
  const place = reached(walk.directory(parent), parent);
  temporaries.removeDead({ at: place.at, stats: place.stats, release() {} });
  return place.at;
}

/** Makes a directory and its missing parents, which inherit their access lists. */
function makeParents(path: string, walk: WindowsWalk, toNative: ToNative): void {
  const place = walk.directory(path);
  const parent = parentOfWindowsPath(path);
  if (place.kind !== 'missing' || place.what !== 'absent' || parent === path) return;
  makeParents(parent, walk, toNative);
  if (walk.directory(parent).kind !== 'directory') return;
  mkdirSync(toNative(path));
  walk.forget(path);
}

interface StepLocation {
  readonly directory: string;
  readonly at: string;
}

async function writeFile(
  { path, content }: Extract<FileStep, { do: 'write-file' }>,
  { directory, at }: StepLocation,
  { replace, temporaries, files }: WindowsMachine,
): Promise<void> {
  const there = lstatSync(at, { throwIfNoEntry: false });
  if (there && !there.isFile() && !there.isSymbolicLink()) {
    throw new Fault('wrong_type', `${path} is no longer a regular file`);
  }
  const temporary = `${directory}/${temporaries.nameFor(path.slice(path.lastIndexOf('\\') + 1))}`;
  let isInPlace = false;
  try {
    writeNew(temporary, content, files);
    await patiently(() => (there?.isFile() ? replace(temporary, at) : rename(temporary, at)));
    isInPlace = true;
  } finally {
    if (!isInPlace) discard(temporary);
  }
}

/** Writes and syncs a new file. */
function writeNew(path: string, content: string | SourceFile, files: BroughtFiles): void {
  const descriptor = openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  try {
    files.write(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Errors while a virus scanner or indexer holds a new file, which lasts for a moment. */
const HELD: ReadonlySet<string | undefined> = new Set(['EACCES', 'EBUSY', 'EPERM']);
const ATTEMPTS = 6;
const FIRST_PAUSE_MS = 50;

async function patiently(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS || !HELD.has(systemCodeOf(error))) throw error;
      await delay(FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}

function discard(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The file was never made, or the next run in this directory removes it.
  }
}

/**
 * Replaces a file with the function of Windows that keeps its access list; a renamed file would inherit that of its directory,
 * which may be more open. Retries while a virus scanner or indexer holds the new file.
 */
const REPLACE = `for ($attempt = 1; ; $attempt += 1) {
  try {
    [System.IO.File]::Replace($data.from, $data.to, [NullString]::Value, $false)
    break
  } catch {
    if ($attempt -eq 6 -or -not ($_.Exception.GetBaseException() -is [System.IO.IOException])) { throw }
    Start-Sleep -Milliseconds (50 * $attempt * $attempt)
  }
}
Write-Answer @{ done = $true }
`;

export const replaceKeepingAccess =
  (run: (command: Command) => Promise<CommandResult>): Replace =>
  async (temporary, target) => {
    const command = powershell(REPLACE, { from: temporary, to: target });
    const answer = readAnswer(command, await run(command));
    if ('refusal' in answer) throw new Fault(answer.refusal.code, answer.refusal.message);
  };
