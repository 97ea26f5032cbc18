#include "h3rt/base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>

#include "h3rt/base/check.h"

namespace h3rt {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  H3RT_CHECK(state_->context != nullptr);
  H3RT_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  H3RT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view text) {
  Update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::Finish() {
  std::array<unsigned char, 32> digest;
  unsigned int length = 0;
  H3RT_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &length) == 1);
  H3RT_CHECK(length == digest.size());
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : digest) {
    out += kHex[c >> 4];
    out += kHex[c & 15];
  }
  return out;
}

std::string Sha256Hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound({.what = "cannot open file", .where = path});
  Sha256 hash;
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    hash.Update(std::string_view(buffer.data(), static_cast<size_t>(in.gcount())));
  }
  if (in.bad()) return IoError({.what = "cannot read file", .where = path});
  return hash.Finish();
}

}  // namespace h3rt
