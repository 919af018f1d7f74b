/** The operator's files, which outlive an upgrade of the client: profiles with pinned certificates, and session tokens. */
import { join } from 'node:path';
import type { Connection } from '../../src/client/connection.js';
import type { Profile } from '../../src/client/profile-file.js';
import { loadProfiles, saveProfiles } from '../../src/client/profiles.js';
import { tokenCache } from '../../src/client/session.js';
import { type Complete, describeReleased } from '../support/released.js';

const work: Complete<Profile> = {
  url: 'https://orch.example:8443',
  tls_fingerprint: 'ab'.repeat(32),
  ca: '/etc/ca.pem',
  key_file: '~/.config/orch/work key',
  allow_unbound_login: true,
  allow_plain_http: false,
};

const connectionIn = (directory: string): Connection => ({
  url: new URL('https://orch.example:8443'),
  profile: 'work',
  pin: 'ab'.repeat(32),
  ca: '/etc/ca.pem',
  key: { kind: 'file', path: '/home/ada/.config/orch/operator.key', from: 'the profile' },
  token: null,
  allowUnboundLogin: false,
  allowPlainHttp: false,
  env: { XDG_STATE_HOME: directory },
});

describeReleased(import.meta.url, [
  {
    name: 'profiles',
    revision: 1,
    version: null,
    write: (directory) =>
      saveProfiles({
        path: join(directory, 'config.yaml'),
        standard: 'home',
        byName: { home: { url: 'https://orch.home:8443' }, work },
      }),
    read: async (directory) => {
      const { standard, byName } = await loadProfiles(join(directory, 'config.yaml'));
      return { standard, byName };
    },
  },
  {
    name: 'token',
    revision: 1,
    version: null,
    write: (directory) =>
      tokenCache(connectionIn(directory)).write({ token: 't'.repeat(43), expiresAt: 1_772_366_400 }),
    read: (directory) => tokenCache(connectionIn(directory)).read(),
  },
]);
