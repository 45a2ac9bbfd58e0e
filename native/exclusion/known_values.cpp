// KnownValues: how items become trees, and how a byte of the text changes a watch.
#include "exclusion/known_values.hpp"

namespace tokenfst {

bool NumberReading::feed(const KnownNumber& known, uint8_t byte) {
  const bool zero = known.digits.empty();
  switch (byte) {
    case '+': return true;
    case '-': negative = true; return zero || (phase == kExponent ? missing(known).near <= 0 : known.negative);
    case '.':
      point = static_cast<int32_t>(read);
      read = std::min(read, static_cast<uint32_t>(known.digits.size()));
      phase = kFraction;
      return true;
    case 'e':
    case 'E': {
      if (phase == kWhole) point = static_cast<int32_t>(read);
      const bool all = read >= known.digits.size();
      phase = kExponent, negative = false, read = 0;
      return all;
    }
    default: return zero ? phase == kExponent || byte == '0' : phase == kExponent ? feed_exponent(known, byte) : feed_digit(known, byte);
  }
}

bool NumberReading::equals(const KnownNumber& known) const {
  if (known.digits.empty()) return true;
  if (phase == kExponent) return read == missing(known).digits().size();
  return read >= known.digits.size() && known.magnitude == Magnitude{phase == kWhole ? int64_t{read} : int64_t{point}, {}};
}

bool NumberReading::feed_exponent(const KnownNumber& known, uint8_t byte) {
  const Magnitude missing = this->missing(known);
  if (!negative && missing.near < 0) return false;
  if (read == 0 && byte == '0') return true;
  const std::string digits = missing.digits();
  return read < digits.size() && digits[read++] == static_cast<char>(byte);
}

bool NumberReading::feed_digit(const KnownNumber& known, uint8_t byte) {
  if (negative != known.negative) return false;
  if (read == 0 && byte == '0') {
    if (phase == kFraction) --point;
    return true;
  }
  if (read >= known.digits.size()) {
    if (phase == kWhole) ++read;
    return byte == '0';
  }
  return known.digits[read++] == static_cast<char>(byte);
}

KnownNumber known_number(std::string_view text) {
  KnownNumber number;
  number.negative = text.starts_with('-');
  const size_t e = std::min(text.find_first_of("eE"), text.size()), point = std::min(text.find('.'), e);
  int64_t whole = 0;
  for (size_t k = number.negative; k < e; ++k) {
    if (text[k] == '.') continue;
    whole += k < point;
    number.digits += text[k];
  }
  const size_t first = std::min(number.digits.find_first_not_of('0'), number.digits.size());
  number.digits.erase(0, first);
  number.digits.erase(number.digits.find_last_not_of('0') + 1);
  if (number.digits.empty()) return {};
  const int64_t shift = whole - static_cast<int64_t>(first);
  const std::string_view exponent = text.substr(std::min(text.size(), e + 1));
  const bool is_signed = exponent.starts_with('-') || exponent.starts_with('+');
  number.magnitude = Magnitude::of(exponent.starts_with('-'), exponent.substr(is_signed), shift);
  return number;
}

KnownValues::Checkpoint KnownValues::checkpoint() const {
  return {static_cast<uint32_t>(values_.size()), static_cast<uint32_t>(known_.size()), static_cast<uint32_t>(watches_.size() + 1)};
}

size_t KnownValues::memory() const {
  return values_.capacity() * sizeof(KnownValue) + known_.capacity() * sizeof(Known) + watches_.size() * sizeof(Group) * 4;
}

uint32_t KnownValues::add(uint32_t container, uint32_t last, std::string_view text) {
  const uint32_t value = parse(text);
  known_.push_back({container, last, value, hash_of_known(last) + hash(value)});
  return static_cast<uint32_t>(known_.size());
}

KnownValues::Watch KnownValues::due(Watch watch, uint32_t container, uint32_t last) {
  if (last == 0) return watch;
  Groups groups = get(watch);
  auto ids = std::make_shared<Ids>();
  for (uint32_t k = last; k; k = known_[k - 1].before) ids->push_back(known_[k - 1].value);
  groups.push_back({{container, {}, {}}, std::move(ids)});
  return number(std::move(groups));
}

KnownValues::Watch KnownValues::begin(Watch watch, uint8_t byte) {
  using enum Leaf::Kind;
  auto agrees = [&](const Place& place, Leaf& leaf, uint32_t& id) {
    if (place.frames.empty() ? leaf.kind != kDue : !to_part(place.frames.back(), id)) return false;
    const KnownValue& value = values_[id];
    leaf = {};
    switch (byte) {
      case 'n': return leaf.kind = kWord, value.kind == KnownValue::kNull;
      case 't': return leaf.kind = kWord, value.kind == KnownValue::kTrue;
      case 'f': return leaf.kind = kWord, value.kind == KnownValue::kFalse;
      case '"': return leaf.kind = kString, value.kind == KnownValue::kString;
      case '{': return value.kind == KnownValue::kObject;
      case '[': return value.kind == KnownValue::kArray;
      default: return leaf.kind = kNumber, value.kind == KnownValue::kNumber && leaf.number.feed(value.number, byte);
    }
  };
  return each(watch, agrees, [&](Place& place) {
    if (byte == '{' || byte == '[') place.frames.push_back({byte == '{', 0, {}});
  });
}

KnownValues::Watch KnownValues::begin_name(Watch watch) {
  auto agrees = [](const Place&, Leaf& leaf, uint32_t&) {
    leaf = {};
    leaf.kind = Leaf::Kind::kName;
    return true;
  };
  return each(watch, agrees, [](Place&) {});
}

KnownValues::Watch KnownValues::letter(Watch watch, uint8_t byte) {
  auto agrees = [&](const Place&, Leaf& leaf, uint32_t& id) {
    const KnownValue& value = values_[id];
    if (leaf.kind == Leaf::Kind::kString) return leaf.read < value.text.size() && value.text[leaf.read++] == static_cast<char>(byte);
      // Names are sorted, so those that begin with the letters so far are adjacent, and `member` is the first of them.
    const std::string_view read = leaf.member < value.parts.size() ? std::string_view(name(value, leaf.member)).substr(0, leaf.read) : "";
    for (; leaf.member < value.parts.size(); ++leaf.member) {
      const std::string& other = name(value, leaf.member);
      if (!other.starts_with(read)) return false;
      if (other.size() > leaf.read && static_cast<uint8_t>(other[leaf.read]) >= byte) break;
    }
    return leaf.member < value.parts.size() && name(value, leaf.member)[leaf.read++] == static_cast<char>(byte);
  };
  return each(watch, agrees, [](Place&) {});
}

KnownValues::Watch KnownValues::end_name(Watch watch) {
  auto agrees = [&](const Place& place, Leaf& leaf, uint32_t& id) {
    const KnownValue& value = values_[id];
    return leaf.member < value.parts.size() && name(value, leaf.member).size() == leaf.read &&
           !std::ranges::binary_search(place.frames.back().seen, leaf.member);
  };
  return each(watch, agrees, [](Place& place) {
    place.frames.back().next = place.leaf.member;
    place.leaf = {};
  });
}

KnownValues::Watch KnownValues::end_string(Watch watch) {
  return end(watch, [&](const Place& place, uint32_t id) { return values_[id].text.size() == place.leaf.read; });
}

KnownValues::Watch KnownValues::digit(Watch watch, uint8_t byte) {
  return each(watch, [&](const Place&, Leaf& leaf, uint32_t& id) { return leaf.number.feed(values_[id].number, byte); }, [](Place&) {});
}

KnownValues::Watch KnownValues::end_number(Watch watch) {
  return end(watch, [&](const Place& place, uint32_t id) { return place.leaf.number.equals(values_[id].number); });
}

KnownValues::Watch KnownValues::end_word(Watch watch) {
  return end(watch, [](const Place&, uint32_t) { return true; });
}

KnownValues::Watch KnownValues::end_container(Watch watch) {
  auto agrees = [&](const Place& place, Leaf& leaf, uint32_t& id) {
    if (place.frames.empty()) return false;  // an item was to begin
    const Frame& frame = place.frames.back();
    if ((frame.object ? frame.seen.size() : frame.next) != values_[id].parts.size()) return false;
    leaf = {};
    if (place.frames.size() > 1) id = values_[id].parent;
    return true;
  };
  return each(watch, agrees, [](Place& place) {
    place.frames.pop_back();
    end(place);
  });
}

bool KnownValues::is_known(Watch watch, uint32_t container) const {
  if (watch == 0) return false;
  return std::ranges::any_of(watches_[watch - 1].groups, [&](const Group& group) {
    if (group.place.container != container || !group.place.frames.empty()) return false;
    if (group.place.leaf.kind == Leaf::Kind::kEnded) return true;
    if (group.place.leaf.kind != Leaf::Kind::kNumber) return false;
    return std::ranges::any_of(*group.ids, [&](uint32_t id) { return group.place.leaf.number.equals(values_[id].number); });
  });
}

KnownValues::Watch KnownValues::without_ended(Watch watch) {
  return each(watch, [](const Place&, Leaf& leaf, uint32_t&) { return leaf.kind != Leaf::Kind::kEnded; }, [](Place&) {});
}

bool KnownValues::to_part(const Frame& frame, uint32_t& id) const {
  const KnownValue& value = values_[id];
  if (frame.next >= value.parts.size()) return false;
  id = value.parts[frame.next];
  return true;
}

void KnownValues::end(Place& place) {
  place.leaf = {};
  if (place.frames.empty()) {
    place.leaf.kind = Leaf::Kind::kEnded;
    return;
  }
  Frame& frame = place.frames.back();
  if (frame.object) frame.seen.insert(std::ranges::upper_bound(frame.seen, frame.next), frame.next);
  else ++frame.next;
}

KnownValues::Watch KnownValues::number(Groups groups) {
  if (groups.empty()) return 0;
  std::ranges::stable_sort(groups, {}, &Group::place);
  const uint64_t key = hash(groups);
  for (auto [at, end] = numbers_.equal_range(key); at != end; ++at) {
    if (watches_[at->second - 1].groups == groups) return at->second;
  }
  watches_.push_back({key, std::move(groups)});
  numbers_.emplace(key, static_cast<uint32_t>(watches_.size()));
  return static_cast<uint32_t>(watches_.size());
}

uint64_t KnownValues::hash(const Groups& groups, int32_t least_point) {
  uint64_t key = 0;
  for (const Group& group : groups) {
    const Leaf& leaf = group.place.leaf;
    key = mix(mix(key, group.place.container), static_cast<uint64_t>(leaf.kind));
    key = mix(mix(key, uint64_t{leaf.member} << 32 | leaf.read),
              uint64_t{leaf.number.read} << 32 | static_cast<uint32_t>(std::max(leaf.number.point, least_point)));
    key = mix(key, static_cast<uint64_t>(leaf.number.phase) << 1 | leaf.number.negative);
    for (const Frame& frame : group.place.frames) {
      key = mix(key, uint64_t{frame.next} << 32 | frame.seen.size());
      for (const uint32_t member : frame.seen) key = mix(key, member);
    }
    for (const uint32_t id : *group.ids) key = mix(key, id);
  }
  return key;
}

uint64_t KnownValues::hash(uint32_t root) const {
  uint64_t key = 0;
  std::vector<uint32_t> pending{root};
  while (!pending.empty()) {
    const KnownValue& value = values_[pending.back()];
    pending.pop_back();
    key = mix(key, uint64_t{value.kind} << 32 | value.parts.size());
    for (const std::string* text : {&value.name, &value.text, &value.number.digits, &value.number.magnitude.far}) {
      key = mix(key, text->size());
      for (const char byte : *text) key = mix(key, static_cast<uint8_t>(byte));
    }
    key = mix(mix(key, static_cast<uint64_t>(value.number.magnitude.near)), value.number.negative);
    pending.insert(pending.end(), value.parts.begin(), value.parts.end());
  }
  return mix(key, 1);
}

uint32_t KnownValues::parse(std::string_view text) {
  const uint32_t root = static_cast<uint32_t>(values_.size());
  std::vector<uint32_t> open;
  std::string name;
  auto add = [&](KnownValue::Kind kind) -> KnownValue& {
    const uint32_t id = static_cast<uint32_t>(values_.size());
    KnownValue& value = values_.emplace_back();
    value.kind = kind;
    if (open.empty()) return value;
    value.parent = open.back();
    value.name = std::exchange(name, {});
    values_[open.back()].parts.push_back(id);
    return value;
  };
  bool named = false;  // whether the next string is a name
  for (size_t k = 0; k < text.size(); ++k) {
    switch (text[k]) {
      case '{':
      case '[':
        add(text[k] == '{' ? KnownValue::kObject : KnownValue::kArray);
        open.push_back(static_cast<uint32_t>(values_.size() - 1));
        named = text[k] == '{';
        break;
      case '}':
        std::ranges::sort(values_[open.back()].parts, {}, [&](uint32_t part) -> const std::string& { return values_[part].name; });
        [[fallthrough]];
      case ']': open.pop_back(); break;
      case ',': named = values_[open.back()].kind == KnownValue::kObject; break;
      case ':': named = false; break;
      case '"': {
        std::string letters;
        Unescaper reader;
        for (++k; text[k] != '"' || reader.phase != Unescaper::kPlain; ++k) {
          reader.feed(static_cast<uint8_t>(text[k]), [&](uint8_t letter) { letters += static_cast<char>(letter); });
        }
        if (named) name = std::move(letters);
        else add(KnownValue::kString).text = std::move(letters);
        break;
      }
      case 'n': add(KnownValue::kNull), k += 3; break;
      case 't': add(KnownValue::kTrue), k += 3; break;
      case 'f': add(KnownValue::kFalse), k += 4; break;
      default: {
        if (!is_of_number(static_cast<uint8_t>(text[k]))) break;
        size_t end = k;
        while (end < text.size() && is_of_number(static_cast<uint8_t>(text[end]))) ++end;
        add(KnownValue::kNumber).number = known_number(text.substr(k, end - k));
        k = end - 1;
      }
    }
  }
  return root;
}

}  // namespace tokenfst
