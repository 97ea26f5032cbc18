// Everything that callers of the media library use. Pictures, clips and sound; no FFmpeg inside:
// what needs it loads libh3rt_media.so on first use (ffmpeg_library.h) and says so when it is not
// there.
//
//   ClipWriter, WriteClip      clip_writer.h     MP4, or Y4M and WAV without FFmpeg
//   ReadClip, ReadClipMetadata clip_reader.h     frames, sound and metadata of a file
//   ReadImage, WritePng, ...   image.h           single pictures, a folder of frames
//   MakeContactSheet           contact_sheet.h   frames of a clip in one picture
//   KeyframeTensor             keyframe.h        a picture onto the canvas of a clip
//   ResizeLanczos              resize.h          Pillow's resampling, bit for bit
//   WriteWav, ReadWav          wav.h             sound without FFmpeg
#pragma once

#include "h3rt/media/clip_metadata.h"
#include "h3rt/media/clip_reader.h"
#include "h3rt/media/clip_writer.h"
#include "h3rt/media/contact_sheet.h"
#include "h3rt/media/ffmpeg_library.h"
#include "h3rt/media/image.h"
#include "h3rt/media/keyframe.h"
#include "h3rt/media/pixels.h"
#include "h3rt/media/resize.h"
#include "h3rt/media/wav.h"
