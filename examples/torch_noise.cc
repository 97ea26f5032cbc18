// The noise that torch's CPU generator draws for a seed, as the public pipelines use it.
//   torch_noise SEED COUNT
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "h3rt/num/torch_rng.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: torch_noise SEED COUNT\n");
    return 2;
  }
  std::vector<float> noise(std::strtoull(argv[2], nullptr, 10));
  h3rt::TorchGenerator generator(std::strtoull(argv[1], nullptr, 10));
  generator.Randn(noise);
  for (const float value : noise) std::printf("%.9g\n", static_cast<double>(value));
  return 0;
}
