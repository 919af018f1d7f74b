/*
 * The limit of comparing and of writing files: "files check LIST" ends with 0 when every file has its content, "files write LIST"
 * writes all of them beside their places, makes them durable at once, and puts them into their places. LIST has a path and a
 * content for each file, each ended by a zero byte.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_CONTENT 65536

static void fail(const char *path)
{
    perror(path);
    exit(1);
}

static char *read_list(const char *path, size_t *length)
{
    struct stat status;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) < 0)
        fail(path);
    char *list = malloc(status.st_size + 1);
    *length = read(file, list, status.st_size);
    list[*length] = 0;
    close(file);
    return list;
}

static void check(const char *path, const char *content)
{
    static char found[MOST_CONTENT];
    int file = open(path, O_RDONLY);
    if (file < 0)
        fail(path);
    ssize_t length = read(file, found, sizeof found);
    if (length != (ssize_t)strlen(content) || memcmp(found, content, length) != 0) {
        fprintf(stderr, "%s differs\n", path);
        exit(1);
    }
    close(file);
}

static void write_beside(const char *path, const char *content)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    int file = open(beside, O_WRONLY | O_CREAT | O_EXCL, 0644);
    if (file < 0 || write(file, content, strlen(content)) < 0)
        fail(beside);
    close(file);
}

static void put_in_place(const char *path)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", path);
    if (rename(beside, path) < 0)
        fail(path);
}

static void sync_file_system(const char *path)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", path);
    int directory = open(dirname(copy), O_RDONLY);
    if (directory < 0 || syncfs(directory) < 0)
        fail(path);
    close(directory);
}

int main(int count, char **words)
{
    size_t length;
    if (count != 3)
        return 2;
    int writes = strcmp(words[1], "write") == 0;
    char *list = read_list(words[2], &length);
    for (char *path = list, *content; path < list + length; path = content + strlen(content) + 1) {
        content = path + strlen(path) + 1;
        if (writes)
            write_beside(path, content);
        else
            check(path, content);
    }
    if (!writes)
        return 0;
    sync_file_system(list);
    for (char *path = list, *content; path < list + length; path = content + strlen(content) + 1) {
        content = path + strlen(path) + 1;
        put_in_place(path);
    }
    sync_file_system(list);
    return 0;
}
