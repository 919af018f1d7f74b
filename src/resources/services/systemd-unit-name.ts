/** Names of systemd units: `nginx` is short for `nginx.service`. */

const SUFFIX = /\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

/** What systemd takes without escaping; anything else would be changed or refused by `systemctl`. */
export const UNIT_NAME_PATTERN = '^[A-Za-z0-9:_][A-Za-z0-9:_.\\\\-]*(@[A-Za-z0-9:_.@\\\\-]*)?$';

const MAX_LENGTH = 255;

/** The name with its type. */
export const unitNameOf = (name: string): string => (SUFFIX.test(name) ? name : `${name}.service`);

/** Equal for all names of a unit: without `.service`, unless what is left would be read as another type of unit. */
export function unitIdentity(name: string): string {
  const short = unitNameOf(name).replace(/\.service$/, '');
  return SUFFIX.test(short) && name.endsWith('.service') ? name : short;
}

/** Why a name that matches the pattern cannot be managed; null when it can. */
export function problemOfUnitName(name: string): string | null {
  const unit = unitNameOf(name);
  if (unit.length > MAX_LENGTH) return `is longer than ${MAX_LENGTH} characters`;
  if (!/@\.[a-z]+$/.test(unit)) return null;
  return `is a template, of which only instances can run; name one, such as ${unit.replace('@.', '@1.')}`;
}
