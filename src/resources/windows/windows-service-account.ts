/** Accounts that services of Windows run as: which name the same one, and which need a password. */
import { foldCase } from './windows-case.js';

/** The accounts of the system by their many names. */
const SYSTEM_ACCOUNTS: Readonly<Record<string, string>> = {
  localsystem: 'localsystem',
  '.\\localsystem': 'localsystem',
  system: 'localsystem',
  'nt authority\\system': 'localsystem',
  'nt authority\\localsystem': 'localsystem',
  localservice: 'localservice',
  'nt authority\\localservice': 'localservice',
  'nt authority\\local service': 'localservice',
  networkservice: 'networkservice',
  'nt authority\\networkservice': 'networkservice',
  'nt authority\\network service': 'networkservice',
};

/** What the service control manager takes for the accounts of the system. */
const WRITTEN: Readonly<Record<string, string>> = {
  localsystem: 'LocalSystem',
  localservice: 'NT AUTHORITY\\LocalService',
  networkservice: 'NT AUTHORITY\\NetworkService',
};

/** True when two names mean the same account; `computer` is the name of the machine, which local accounts may carry. */
export function isSameAccount(one: string, other: string, computer: string): boolean {
  return canonical(one, computer) === canonical(other, computer);
}

/** The name to give to the service control manager. */
export const writtenAccount = (account: string): string => WRITTEN[canonical(account, '')] ?? account;

/** Accounts of the system, virtual accounts and managed service accounts have no password that anybody would give. */
export function needsPassword(account: string): boolean {
  const name = canonical(account, '');
  return WRITTEN[name] === undefined && !name.startsWith('nt service\\') && !name.endsWith('$');
}

function canonical(account: string, computer: string): string {
  const folded = foldCase(account);
  const own = `${foldCase(computer)}\\`;
  const local = computer !== '' && folded.startsWith(own) ? `.\\${folded.slice(own.length)}` : folded;
  return SYSTEM_ACCOUNTS[local] ?? local;
}
