/** Gates the suites that need booted hosts, or programs that not every machine has. */
import { describe } from 'vitest';
import { isInstalled } from '../support/is-installed.js';
import { whyNoHosts } from './why-no-hosts.js';

/** Programs that a suite takes besides, and the Debian package that has each. */
export type Needs = Readonly<Record<string, string>>;

/** Defines a suite that needs booted hosts; where there can be none it is skipped, and says why. */
export function describeHosts(title: string, suite: () => void, needs: Needs = {}): void {
  const reason = whyNoHosts() ?? whyMissing(needs);
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, suite);
}

function whyMissing(needs: Needs): string | null {
  const missing = Object.entries(needs).filter(([program]) => !isInstalled(program));
  if (missing.length === 0) return null;
  const packages = [...new Set(missing.map(([, name]) => name))];
  return `${missing.map(([program]) => program).join(', ')} not installed (apt-get install ${packages.join(' ')})`;
}
