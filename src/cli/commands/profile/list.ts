/** `orch profile list`. */
import { profilesPath } from '../../../client/directories.js';
import { loadProfiles } from '../../../client/profiles.js';
import { defineCommand } from '../../define-command.js';
import { orNone } from '../../format.js';
import { marked, profileBody } from './profile-view.js';

export const command = defineCommand({
  examples: ['orch profile list'],
  access: 'local',
  run: async ({ env }) => {
    const profiles = await loadProfiles(profilesPath(env));
    const names = Object.keys(profiles.byName).sort();
    return {
      body: names.map((name) => profileBody(profiles, name)),
      names,
      view: {
        kind: 'table',
        columns: [
          { title: '' },
          { title: 'NAME', whole: true },
          { title: 'URL' },
          { title: 'CERTIFICATE' },
          { title: 'KEY FILE' },
        ],
        rows: names.map((name) => {
          const profile = profiles.byName[name];
          const trust = profile?.tls_fingerprint ?? profile?.ca;
          return [marked(profiles, name), name, profile?.url ?? '', orNone(trust), orNone(profile?.key_file)];
        }),
        empty: 'No profiles. Make one with: orch profile create NAME --url https://HOST:4748',
      },
    };
  },
});
