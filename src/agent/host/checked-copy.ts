/** Runs a command on a copy of a new content, before the content takes the place of a file. */
import { closeSync, constants, fchmodSync, fchownSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Command, CommandResult } from '../../resources/command.js';
import type { Accounts, CheckedFile } from '../../resources/host.js';
import { withFile } from '../../resources/unix/command-line.js';
import { ownersOf } from './ownership.js';
import { refusalOf } from './path-refusal.js';
import { withoutOutput } from './run-command.js';
import type { ScriptDirectories, ScriptDirectory } from './script-directory.js';
import type { BroughtFiles } from './source-files.js';

interface CopyTools {
  readonly run: (command: Command) => Promise<CommandResult>;
  readonly workplaces: ScriptDirectories;
  readonly files: BroughtFiles;
  readonly accounts: Accounts;
}

/**
 * The copy has owner, group and mode of the file. It is in a directory that only this process's user can list, and that is in
 * memory unless the copy is private.
 */
export async function runOnCopy(command: Command, checked: CheckedFile, tools: CopyTools): Promise<CommandResult> {
  const { run, workplaces } = tools;
  let workplace: ScriptDirectory | null = null;
  try {
    let path: string;
    try {
      workplace = checked.isPrivate === true ? workplaces.open() : workplaces.openForOthers();
      path = await copyInto(workplace, checked, tools);
    } catch (error) {
      const refusal = refusalOf(error, `cannot write a copy of ${checked.path}`);
      return withoutOutput({ how: 'not-started', missing: false, ...refusal });
    }
    return await run({ ...command, argv: withFile(command.argv, path) });
  } finally {
    workplace?.remove();
  }
}

async function copyInto(
  workplace: ScriptDirectory,
  { path, content, mode, ...owners }: CheckedFile,
  { files, accounts }: CopyTools,
): Promise<string> {
  if (typeof content !== 'string') await files.bring([content]);
  const copy = join(workplace.path, safeName(path));
  const descriptor = openSync(copy, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600);
  try {
    files.write(descriptor, content);
    const { uid, gid } = ownersOf(owners, accounts.own, accounts);
    if (uid !== accounts.own.uid || gid !== accounts.own.gid) fchownSync(descriptor, uid, gid);
    fchmodSync(descriptor, mode);
  } finally {
    closeSync(descriptor);
  }
  return copy;
}

/** Returns the last part of a path without characters that a shell reads, because a check may hand the name to one. */
const safeName = (path: string): string => {
  const name = path.slice(path.lastIndexOf('/') + 1).replaceAll(/[^A-Za-z0-9._@+:=-]/g, '_');
  return name === '' || /^\.+$/.test(name) ? 'file' : name.slice(-200);
};
