/** Why `winget` could not do something, by its return codes, which are the same in every language. */
import type { CommandRefusal } from '../kind.js';

interface Meaning {
  readonly code: CommandRefusal['code'];
  /** Behind the name of the package. */
  readonly says: string;
}

const failed = (says: string): Meaning => ({ code: 'command_failed', says });

/** From the list of return codes in winget's own documentation. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  '8a150002': {
    code: 'package_manager_broken',
    says: 'this winget is too old: it does not take the arguments of version 1.4',
  },
  '8a15000b': {
    code: 'package_manager_broken',
    says: 'the sources of winget are corrupt; try "winget source reset --force"',
  },
  '8a15000f': { code: 'package_manager_broken', says: 'the index of winget is not there; try "winget source update"' },
  '8a150010': failed('none of its installers fits this machine'),
  '8a150011': failed('its installer is not the one that its manifest tells of (hash mismatch)'),
  '8a150014': { code: 'package_unknown', says: 'no source of winget has that package' },
  '8a150016': failed('several packages match'),
  '8a150017': { code: 'package_version_unknown', says: 'no source of winget has that version' },
  '8a150019': { code: 'permission_denied', says: 'it needs an administrator' },
  '8a15002b': failed('winget finds no update that fits this machine'),
  '8a150030': failed('its uninstaller failed'),
  '8a15003a': { code: 'permission_denied', says: 'a group policy forbids it' },
  '8a15004b': { code: 'package_manager_broken', says: 'a source of winget cannot be opened' },
  '8a150056': failed('its installer does not run as an administrator'),
  '8a150068': failed('it is pinned; let it go with "winget pin remove"'),
  '8a150102': { code: 'package_manager_locked', says: 'another installation is in progress on this machine' },
};

export function wingetFailure(name: string, code: number, output: string): CommandRefusal {
  const hex = (code >>> 0).toString(16).padStart(8, '0');
  const meaning = MEANINGS[hex];
  if (meaning !== undefined)
    return { code: meaning.code, message: `${name}: ${meaning.says} (0x${hex.toUpperCase()})` };
  const lines = output.trim();
  return {
    code: 'command_failed',
    message: `winget ended with 0x${hex.toUpperCase()} for ${name}${lines === '' ? '' : `: ${lines}`}`,
  };
}
