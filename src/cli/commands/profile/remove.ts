/** `orch profile remove`. */
import { profilesPath } from '../../../client/directories.js';
import { loadProfiles, saveProfiles, withoutProfile } from '../../../client/profiles.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines } from '../../view.js';

export const command = defineCommand({
  examples: ['orch profile remove home'],
  detail: ['Forgets the address and its certificate. The key file stays.'],
  access: 'local',
  args: { name: argument('NAME', 'the profile', 'profile') },
  run: async ({ env }, { name }) => {
    await saveProfiles(withoutProfile(await loadProfiles(profilesPath(env)), name));
    return { names: [name], view: lines(`Forgot the profile ${name}.`) };
  },
});
