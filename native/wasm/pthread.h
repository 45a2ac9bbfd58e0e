/* The core includes it; what it uses of it is in platform.hpp. */
