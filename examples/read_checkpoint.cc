// Weights of a transformer under their canonical names, whatever layout the file has.
//   read_checkpoint FILE_OR_FOLDER
#include <cstdio>

#include "h3rt/io/checkpoint.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: read_checkpoint FILE_OR_FOLDER\n");
    return 2;
  }
  const auto checkpoint = h3rt::OpenTransformer(argv[1]);
  if (!checkpoint.ok()) {
    std::fprintf(stderr, "%s\n", h3rt::MessageOf(checkpoint.status()).c_str());
    return 1;
  }
  std::printf("layout %s, %lld blocks\n", h3rt::NameOf(checkpoint->layout),
              static_cast<long long>(checkpoint->config.layers));
  for (const auto& [name, view] : checkpoint->weights.entries()) {
    std::printf("%-60s %-5s %s\n", name.c_str(), std::string(h3rt::NameOf(view.dtype())).c_str(),
                view.shape().ToString().c_str());
  }
  return 0;
}
