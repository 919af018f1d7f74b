/** `orch profile update`. */
import { profilesPath } from '../../../client/directories.js';
import type { Profile } from '../../../client/profile.js';
import { loadProfiles, requireProfile, saveProfiles, withProfile } from '../../../client/profiles.js';
import { parseServerUrl, urlText } from '../../../client/server-url.js';
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { choice } from '../../option.js';
import { givenMembers, profileOptions } from './profile-options.js';
import { profileBody, profileFields } from './profile-view.js';

const FORGETTABLE = ['tls-fingerprint', 'ca', 'key-file', 'allow-unbound-login', 'allow-plain-http'] as const;

export const command = defineCommand({
  examples: ['orch profile update home --tls-fingerprint 9f86d081…', 'orch profile update home --forget key-file'],
  detail: ['Changes what is given and leaves the rest.'],
  access: 'local',
  connection: true,
  args: { name: argument('NAME', 'the profile', 'profile') },
  options: { ...profileOptions, forget: choice('WHAT', FORGETTABLE, 'remember this no longer') },
  run: async ({ env, globals }, { name, forget, ...given }) => {
    const profiles = await loadProfiles(profilesPath(env));
    const before = requireProfile(profiles, name);
    const url = globals.url === undefined ? {} : { url: urlText(parseServerUrl(globals.url, '--url')) };
    const members = { ...url, ...givenMembers(globals, given) };
    if (forget === undefined && Object.keys(members).length === 0) {
      throw new Fault('usage', 'nothing to change was given', { hint: 'see: orch profile update --help' });
    }
    const profile = without({ ...before, ...members }, forget);
    const changed = withProfile(profiles, name, profile);
    await saveProfiles(changed);
    return { body: profileBody(changed, name), names: [name], view: profileFields(name, profile) };
  },
});

function without(profile: Profile, flag: (typeof FORGETTABLE)[number] | undefined): Profile {
  const { url, ...members } = profile;
  const member = flag?.replaceAll('-', '_');
  return { url, ...Object.fromEntries(Object.entries(members).filter(([key]) => key !== member)) };
}
