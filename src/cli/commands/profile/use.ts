/** `orch profile use`. */
import { profilesPath } from '../../../client/directories.js';
import { loadProfiles, requireProfile, saveProfiles } from '../../../client/profiles.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';
import { profileBody } from './profile-view.js';

export const command = defineCommand({
  examples: ['orch profile use home'],
  access: 'local',
  args: { name: argument('NAME', 'the profile', 'profile') },
  run: async ({ env }, { name }) => {
    const profiles = await loadProfiles(profilesPath(env));
    const { url } = requireProfile(profiles, name);
    const changed = { ...profiles, standard: name };
    await saveProfiles(changed);
    return { body: profileBody(changed, name), names: [name], view: lines(`${name} (${url}) is the default now.`) };
  },
});
