/** Files of text that an edit may change: what is refused, and their text. */
import type { CommandRefusal } from '../command.js';
import { MAX_CONTENT_BYTES, type PathFact } from '../host.js';

/** Returns the text of a file; null for everything else. */
export const textIn = (file: PathFact): string | null =>
  file.type === 'file' && file.content.kind === 'text' ? file.content.text : null;

/** Returns why a file cannot be edited; null for text, and where there is no file. */
export function checkTextFile(path: string, file: PathFact): CommandRefusal | null {
  switch (file.type) {
    case 'absent':
      return null;
    case 'unreadable':
      return { code: file.code, message: file.message };
    case 'directory':
      return { code: 'wrong_type', message: `${path} is a directory, not a file` };
    case 'other':
      return { code: 'wrong_type', message: `${path} is a ${file.what}, not a file` };
    case 'symlink': {
      const message = `${path} is a symlink to ${file.target}, which is not followed; declare the path of the file itself`;
      return { code: 'wrong_type', message };
    }
    case 'file': {
      const { content } = file;
      if (file.isVirtual) {
        return { code: 'wrong_type', message: `${path} is a file of the kernel; change its values with a script` };
      }
      if (content.kind === 'too-large') {
        const message = `${path} has ${file.size} bytes, and a file is edited up to ${MAX_CONTENT_BYTES} bytes`;
        return { code: 'content_unsuitable', message };
      }
      if (content.kind === 'text' && !content.text.includes('\0')) return null;
      return { code: 'content_unsuitable', message: `${path} is not text in UTF-8, so no part of it is changed` };
    }
  }
}
