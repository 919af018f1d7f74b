/** Changes settings in the text of a YAML file and keeps its comments. */
import { isMap, parseDocument } from 'yaml';

/**
 * Returns the text with these settings, by dotted key. `source` must be a valid settings file; nothing else in it changes.
 * @param changes values; undefined leaves a setting as it is
 */
export function editSettings(
  source: string,
  changes: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined);
  if (given.length === 0) return source;
  const document = parseDocument(source);
  if (!isMap(document.contents)) {
    // A file of nothing but comments, which stay above the settings.
    const above = source.trim() === '' ? '' : `${source.trimEnd()}\n`;
    return `${above}${editSettings('{}\n', changes)}`;
  }
  document.contents.flow = false;
  for (const [key, value] of given) {
    const path = key.split('.');
    if (path.length > 1 && !isMap(document.getIn(path.slice(0, -1)))) {
      document.setIn(path.slice(0, -1), document.createNode({}));
      const section = document.getIn(path.slice(0, -1));
      if (isMap(section)) section.flow = false;
    }
    document.setIn(path, value);
  }
  return document.toString();
}
