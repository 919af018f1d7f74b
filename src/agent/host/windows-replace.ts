/**
 * Replaces files on Windows with what the system has for that, which keeps the access list of the file that goes. A
 * renamed file would have what its directory passes on, so that a file closed to others could become open to them.
 */
import { Fault } from '../../kernel/fault.js';
import type { Command, CommandResult } from '../../resources/command.js';
import { powershell, readAnswer } from '../../resources/windows/powershell.js';
import type { Replace } from './windows-commit.js';

/** Virus scanners and indexers hold a new file for a moment. */
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
