/* The C interface between h3rt_media and the module libh3rt_media.so, which alone links FFmpeg.
 * Plain C types only, so that the two sides may be built by different compilers and the program
 * starts on a machine without FFmpeg. Any change of a struct or a function raises the version; the
 * loader refuses a module of another version.
 *
 * Every function returns a code (0 is success) and, on failure, fills `error`. Codes are the
 * canonical status codes. Nothing here throws, prints or exits. A handle is used by one thread at a
 * time; different handles are independent. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define H3RT_MEDIA_ABI_VERSION 1u

enum {
  H3RT_MEDIA_OK = 0,
  H3RT_MEDIA_CANCELLED = 1,
  H3RT_MEDIA_INVALID_ARGUMENT = 3,
  H3RT_MEDIA_NOT_FOUND = 5,
  H3RT_MEDIA_RESOURCE_EXHAUSTED = 8,
  H3RT_MEDIA_FAILED_PRECONDITION = 9,
  H3RT_MEDIA_UNIMPLEMENTED = 12,
  H3RT_MEDIA_INTERNAL = 13,
  H3RT_MEDIA_UNAVAILABLE = 14,
  H3RT_MEDIA_DATA_LOSS = 15
};

typedef struct H3rtMediaError {
  int32_t code;
  char text[500];
} H3rtMediaError;

typedef struct H3rtMediaTag {
  const char* key;
  const char* value;
} H3rtMediaTag;

/* Where a clip goes. Both return the number of bytes moved or a negative errno. The caller owns the
 * file, so that a full disk keeps its errno and an unfinished file is the caller's to remove. */
typedef struct H3rtMediaIo {
  void* user;
  int64_t (*write_at)(void* user, int64_t offset, const uint8_t* data, int64_t bytes);
  int64_t (*read_at)(void* user, int64_t offset, uint8_t* data, int64_t bytes);
} H3rtMediaIo;

typedef struct H3rtMediaClipSpec {
  int32_t width;  /* even */
  int32_t height; /* even */
  int32_t fps_num;
  int32_t fps_den;
  int32_t crf;
  int32_t has_audio; /* 0 or 1; stereo */
  int32_t sample_rate;
  int32_t audio_bits_per_second;
  const char* video_encoder; /* null: choose */
  const H3rtMediaTag* tags;
  int64_t tag_count;
} H3rtMediaClipSpec;

typedef struct H3rtMediaWriter H3rtMediaWriter;

/* Planes of one picture: BT.709, limited range, 4:2:0 with left-sited chroma, rows without gaps. */
typedef struct H3rtMediaYuv {
  const uint8_t* y;
  const uint8_t* u;
  const uint8_t* v;
} H3rtMediaYuv;

typedef struct H3rtMediaClipInfo {
  int32_t has_video;
  int32_t has_audio;
  int32_t width;
  int32_t height;
  int32_t fps_num;
  int32_t fps_den;
  int64_t declared_frames; /* 0 when the file does not say */
  double video_duration_s;
  double audio_duration_s;
  int32_t sample_rate; /* of the file, before resampling */
  int32_t channels;    /* of the file */
  char container[64];
  char video_codec[32];
  char pixel_format[32];
  char color_space[32];
  char color_range[32];
  char audio_codec[32];
  char audio_profile[32];
} H3rtMediaClipInfo;

/* What a reader reports. Each callback returns 0 to go on; anything else ends the read with that
 * code. Null callbacks skip that part of the file. */
typedef struct H3rtMediaClipSink {
  void* user;
  int32_t (*info)(void* user, const H3rtMediaClipInfo* info);
  int32_t (*tag)(void* user, const char* key, const char* value);
  int32_t (*frame)(void* user, const uint8_t* rgb, int64_t row_bytes, double time_s);
  int32_t (*audio)(void* user, const float* left, const float* right, int64_t samples);
} H3rtMediaClipSink;

enum { H3RT_MEDIA_IMAGE_PNG = 1, H3RT_MEDIA_IMAGE_JPEG = 2, H3RT_MEDIA_IMAGE_WEBP = 3 };

typedef struct H3rtMediaApi {
  uint32_t abi_version;
  uint32_t struct_bytes;
  /* The versions of FFmpeg's libraries, one line. */
  const char* (*version)(void);
  /* FFmpeg's own messages, line by line, from any thread. Null silences them. */
  void (*set_log)(void (*log)(const char* line));

  int32_t (*writer_open)(const H3rtMediaClipSpec* spec, const H3rtMediaIo* io,
                         H3rtMediaWriter** writer, H3rtMediaError* error);
  int32_t (*writer_video)(H3rtMediaWriter* writer, const H3rtMediaYuv* picture,
                          H3rtMediaError* error);
  int32_t (*writer_audio)(H3rtMediaWriter* writer, const float* left, const float* right,
                          int64_t samples, H3rtMediaError* error);
  int32_t (*writer_finish)(H3rtMediaWriter* writer, H3rtMediaError* error);
  void (*writer_free)(H3rtMediaWriter* writer);

  /* Audio comes resampled to `sample_rate`, stereo; a mono source is repeated in both channels. */
  int32_t (*read_clip)(const char* path, int32_t sample_rate, const H3rtMediaClipSink* sink,
                       H3rtMediaError* error);

  int32_t (*encode_png)(const uint8_t* rgb, int64_t width, int64_t height,
                        int32_t (*emit)(void* user, const uint8_t* data, int64_t bytes), void* user,
                        H3rtMediaError* error);
  /* `allocate` returns width * height * 3 bytes, or null to end the read. */
  int32_t (*decode_image)(int32_t kind, const uint8_t* data, int64_t bytes, int64_t max_pixels,
                          uint8_t* (*allocate)(void* user, int64_t width, int64_t height),
                          void* user, H3rtMediaError* error);
} H3rtMediaApi;

/* The module's only symbol. Null when the module does not speak `abi_version`. */
typedef const H3rtMediaApi* (*H3rtMediaGetApi)(uint32_t abi_version);
#define H3RT_MEDIA_GET_API_NAME "h3rt_media_get_api"

#ifdef __cplusplus
}
#endif
